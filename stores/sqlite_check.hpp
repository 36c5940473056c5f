// Looks for damage in a SQLite store: the file's own, and what does not follow
// from the log.

#pragma once

#include "troupe/stores/sqlite_reader.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// One line per finding. `on_progress` may be empty. Throws what reading
/// throws.
std::vector<std::string>
check_sqlite_store(sqlite_reader& reader,
                   const std::function<void(double)>& on_progress);

} // namespace troupe
