// From an address to a store: `memory:`, `sqlite:PATH`, `postgres:URL`.

#pragma once

#include "troupe/stores/store.hpp"

#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// What "acknowledged" means, from strongest to fastest.
enum class durability : std::uint8_t {
  durable, ///< Survives a power failure.
  os,      ///< Handed to the operating system: survives a killed process.
  none,    ///< As `os`, and the file may be damaged by a power failure.
};

/// `"durable"`, `"os"`, `"none"`.
std::string_view to_string(durability promised) noexcept;

/// The reverse. Fails with `errc::invalid_argument`.
result<durability> durability_from(std::string_view name);

struct store_options {
  troupe::durability durability = durability::durable;
  /// Opens for reading alone: nothing is made, migrated or written; commits
  /// fail.
  bool read_only = false;
  /// Receives warnings for an operator about conditions that fail no call, one
  /// sentence each. Called from any thread of the store; must not block or
  /// throw. Unset: warnings are dropped.
  std::function<void(const std::string& warning)> on_warning = {};
  /// Bytes of a SQLite file's write-ahead log above which commits fail with
  /// `errc::store_failed`; 0: no bound. A connection that goes on reading what
  /// was stored earlier keeps the log from being emptied.
  std::uint64_t log_bytes_max = 0;
};

enum class store_kind : std::uint8_t { memory, sqlite, postgres };

struct store_address {
  store_kind kind = store_kind::memory;
  /// The path of a SQLite file, or the whole URL of a PostgreSQL database
  /// (`postgres://…`).
  std::string place;
};

/// Takes an address apart. Fails with `errc::invalid_argument`;
/// `is_store_scheme` tells an unknown scheme from a bad path. Paths: no `..`
/// component, no `?`, no `#`, also not percent-encoded.
result<store_address> read_store_address(std::string_view text);

/// Whether `text` starts with a scheme that troupe knows.
bool is_store_scheme(std::string_view text) noexcept;

/// The address as it may be shown: without the password of a database.
std::string without_password(std::string_view address);

/// What keeps the store of that kind, with its version: `"SQLite 3.40.1"`; of
/// PostgreSQL the client library's.
std::string store_version(store_kind kind);

/// Opens the store at an address. A SQLite file that does not exist is made by
/// the first write. Fails with `errc::invalid_argument`, `errc::store_failed`
/// or `errc::corrupt`.
result<std::unique_ptr<store>> open_store(std::string_view address,
                                          const store_options& options = {});

} // namespace troupe
