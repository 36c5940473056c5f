// Memories in a SQLite file of their own, searched with FTS5.

#pragma once

#include "troupe/stores/memory_service.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

/// Opens the file; the first memory that is added creates a missing one. Fails
/// as `open_memory_service`. A call waits up to 30 seconds for other processes.
result<std::unique_ptr<memory_service>>
open_sqlite_memories(const std::filesystem::path& file);

} // namespace troupe
