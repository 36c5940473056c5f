// Settings that all connections of one SQLite store share. Tests use them to
// open a store with other limits.

#pragma once

#include "troupe/stores/store_options.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

namespace troupe {

struct sqlite_settings {
  std::filesystem::path file;
  store_options options = {};
  /// Name of the SQLite VFS (the layer that accesses files); empty for the
  /// default. Used for fault injection.
  std::string vfs = {};
  /// Maximum time to wait for the lock of another process.
  std::chrono::milliseconds lock_timeout{30'000};
  /// Number of log rows that are collected before they are folded. More rows
  /// share more pages, but the next process after a crash has to read them
  /// again.
  std::int64_t fold_rows = 32'768;
  /// Bytes of the write-ahead log that a reader may hold back before a warning.
  /// Half of `log_bytes_max` applies if that is less.
  std::uint64_t log_bytes_warned = std::uint64_t{256} << 20U;
  /// False: does not wait for turns (`stores/turns/write_turns.hpp`). For
  /// several stores that one thread uses.
  bool takes_turns = true;
};

} // namespace troupe
