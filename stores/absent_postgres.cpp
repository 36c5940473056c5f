// The PostgreSQL store of a build without it (the CMake option TROUPE_POSTGRES
// is off): every opening fails, and the message says how to build with it.

#include "troupe/core/support/passwords.hpp"
#include "troupe/stores/postgres/address.hpp"
#include "troupe/stores/postgres/open.hpp"

namespace troupe {

// The address is not quoted, since it may hold a password.
result<std::unique_ptr<store>>
open_postgres_store(const std::string& /*url*/,
                    const store_options& /*options*/) {
  return error(errc::invalid_argument,
               "this build of troupe has no PostgreSQL store; build it with "
               "-DTROUPE_POSTGRES=ON, which needs libpq (package libpq-dev of "
               "Debian), or use sqlite:PATH");
}

std::string libpq_version() {
  return "no libpq";
}

std::string postgres_address_flaw(const std::string& /*url*/) {
  return {};
}

std::string leave_out_passwords(std::string_view address) {
  return without_passwords(address);
}

} // namespace troupe
