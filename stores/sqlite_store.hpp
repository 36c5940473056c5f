// Scopes and events in one SQLite file; docs/storage.md describes it column by
// column.

#pragma once

#include "troupe/stores/open_store.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

/// Opens the file, or what will become one with the first write. Any number of
/// processes may share it. Fails with `errc::store_failed` (no access, locked)
/// or `errc::corrupt` (no such file of troupe's, damaged, written by a newer
/// version).
result<std::unique_ptr<store>>
open_sqlite_store(const std::filesystem::path& file,
                  const store_options& options = {});

} // namespace troupe
