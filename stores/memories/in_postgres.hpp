// Memories in a PostgreSQL database, searched with a GIN index.

#pragma once

#include "troupe/stores/memory_service.hpp"

#include <memory>
#include <string>

namespace troupe {

/// Connects, and creates the tables in the URL's schema if they are missing.
/// Fails as `open_memory_service`; a build without PostgreSQL fails with
/// `errc::invalid_argument`.
result<std::unique_ptr<memory_service>>
open_postgres_memories(const std::string& url);

} // namespace troupe
