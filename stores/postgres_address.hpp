// The URL of a PostgreSQL database as text: what is wrong with it, and how it
// reads without its passwords.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Why libpq would not take `url` for what it is meant to be, in words for an
/// error; empty if it would. Names no part of the URL: a password that is not
/// percent-encoded may stand where libpq reads a host or a port.
std::string postgres_address_flaw(const std::string& url);

/// `address` with all passwords left out, so that it can be given again: libpq
/// takes the password from `PGPASSWORD` or `~/.pgpass` then. Of a PostgreSQL
/// URL without a flaw; any other address stays as it is.
std::string leave_out_passwords(std::string_view address);

} // namespace troupe
