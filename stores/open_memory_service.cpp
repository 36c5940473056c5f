#include "troupe/stores/memories/in_memory.hpp"
#include "troupe/stores/memories/in_postgres.hpp"
#include "troupe/stores/memories/in_sqlite.hpp"
#include "troupe/stores/memory_service.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>

namespace troupe {

result<std::unique_ptr<memory_service>>
open_memory_service(std::string_view address) {
  // The rules are those of a session store.
  const auto read = read_store_address(address);
  if (!read)
    return error(
      read.error().code(),
      fmt::format("open the memory service: {}", read.error().message()));
  switch (read->kind) {
  case store_kind::memory:
    return make_transient_memories();
  case store_kind::sqlite:
    return open_sqlite_memories(read->location);
  case store_kind::postgres:
    return open_postgres_memories(read->location);
  case store_kind::apps:
    return error(errc::invalid_argument,
                 "open the memory service: apps:FILE is for a store; memories "
                 "are kept in one place, memory:, sqlite:PATH or postgres:URL");
  }
  return error(errc::internal, "a memory service of an unknown kind");
}

} // namespace troupe
