// A store in one SQLite file. docs/storage.md describes every column.

#pragma once

#include "troupe/stores/sqlite/settings.hpp"
#include "troupe/stores/store.hpp"
#include "troupe/stores/store_options.hpp"

#include <filesystem>
#include <memory>

namespace troupe {

/// Opens the file; the first write creates a missing one. Any number of
/// processes may share it. Fails with `errc::store_failed` (no access, locked;
/// try again) or `errc::corrupt` (not a store of troupe, damaged, or written by
/// a newer version).
result<std::unique_ptr<store>>
open_sqlite_store(const std::filesystem::path& file,
                  const store_options& options = {});

namespace detail {

/// The same with all settings. Also called by tests.
result<std::unique_ptr<store>> open_sqlite_store(sqlite_settings settings);

} // namespace detail

} // namespace troupe
