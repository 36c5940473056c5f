// Options for opening a store of any kind.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Failures that an acknowledged change survives, from strongest to fastest.
/// docs/storage.md, "Durability", has the details of each back end.
enum class durability : std::uint8_t {
  durable, ///< A power failure.
  os,      ///< The end of the process; a power failure may lose the newest.
  none,    ///< Like `os`, but a power failure may damage the file.
};

/// `"durable"`, `"os"`, `"none"`.
std::string_view to_string(durability promised) noexcept;

/// Parses the name. Fails with `errc::invalid_argument`.
result<durability> durability_from(std::string_view name);

/// Options of a store in a database. `memory:` ignores all of them.
struct store_options {
  /// Failures that an acknowledged commit survives. With PostgreSQL `none` is
  /// the same as `os`.
  troupe::durability durability = durability::durable;
  /// Opens only for reading: the store creates, migrates and writes nothing,
  /// and commits fail.
  bool read_only = false;
  /// Receives warnings for an operator, one sentence each, about conditions
  /// that fail no call. Called from any thread of the store; must not block or
  /// throw. Warnings are dropped if it is unset.
  std::function<void(const std::string& warning)> on_warning = {};
  /// Size in bytes of a SQLite file's write-ahead log from which commits fail
  /// with `errc::store_failed`. Unset: no limit; 0 is refused. The log cannot
  /// be emptied while a connection keeps reading an old state.
  std::optional<std::uint64_t> log_bytes_max = {};
};

} // namespace troupe
