// Searches a SQLite store for damage: in the file itself, and where tables do
// not follow from the log.

#pragma once

#include "troupe/stores/sqlite/reader.hpp"

#include <functional>
#include <string>
#include <vector>

namespace troupe {

/// Returns one line per finding. `on_progress` may be empty. Throws on failures
/// of reading.
std::vector<std::string>
check_sqlite_store(sqlite_reader& reader,
                   const std::function<void(double)>& on_progress);

} // namespace troupe
