// Handles the URL of a PostgreSQL database as text: finds its flaws and removes
// its passwords.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns the reason why libpq would misread or refuse `url`, as the end of a
/// sentence for an error; empty if there is none. The text quotes no part of
/// the URL: a password that is not percent-encoded may be where libpq reads a
/// host or a port.
std::string postgres_address_flaw(const std::string& url);

/// Returns `address` without any password. The result can be used as an address
/// again; libpq then takes the password from `PGPASSWORD` or `~/.pgpass`. Only
/// a PostgreSQL URL without a flaw is changed.
std::string leave_out_passwords(std::string_view address);

} // namespace troupe
