// The reader of PostgreSQL databases in a build without PostgreSQL (the CMake
// option TROUPE_POSTGRES is off): every opening fails.

#include "troupe/cli/adk/tables.hpp"

namespace troupe::cli {

// The address is not quoted, since it may hold a password.
result<std::unique_ptr<adk_tables>>
open_adk_postgres(const std::string& /*url*/) {
  return error(errc::invalid_argument,
               "this build of troupe reads no PostgreSQL databases; build it "
               "with -DTROUPE_POSTGRES=ON");
}

} // namespace troupe::cli
