// Memories in PostgreSQL in a build without it (the CMake option
// TROUPE_POSTGRES is off): every opening fails, and the message says how to
// build with it.

#include "troupe/stores/memories/in_postgres.hpp"

namespace troupe {

// The address is not quoted, since it may hold a password.
result<std::unique_ptr<memory_service>>
open_postgres_memories(const std::string& /*url*/) {
  return error(errc::invalid_argument,
               "this build of troupe has no PostgreSQL memory; build it with "
               "-DTROUPE_POSTGRES=ON, which needs libpq (package libpq-dev of "
               "Debian), or use sqlite:PATH");
}

} // namespace troupe
