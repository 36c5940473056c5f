// What every connection of one SQLite store has in common, and how tests open
// a store with settings of their own.

#pragma once

#include "troupe/stores/open_store.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace troupe {

struct sqlite_settings {
  std::filesystem::path file;
  store_options options = {};
  /// SQLite's name of the layer below it; empty is its own. For fault
  /// injection.
  std::string vfs = {};
  /// How long to wait for another process' lock.
  std::chrono::milliseconds patience{30'000};
  /// How many log rows wait until they are folded. More share more pages, but
  /// have to be read again when a killed process is followed by the next.
  std::int64_t fold_rows = 32'768;
  /// Bytes of the write-ahead log that a reader holds back before a warning
  /// says so; half of `log_bytes_max` if that is less.
  std::uint64_t log_bytes_warned = std::uint64_t{256} << 20U;
};

namespace detail {

/// As `open_sqlite_store` of sqlite_store.hpp.
result<std::unique_ptr<store>> open_sqlite_store(sqlite_settings settings);

} // namespace detail

} // namespace troupe
