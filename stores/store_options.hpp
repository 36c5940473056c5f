// The location of a store, and options for opening one of any kind.

#pragma once

#include "troupe/core/error.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe {

/// An address in text, such as `sqlite:PATH`, or a shared object. Checked where
/// it is opened; a null object is refused there.
template <class Store>
class location {
public:
  /// No address: the default of the option that takes it.
  location() = default;

  /// An address. The pointer must not be null.
  location(const char* address) : held_(std::string(address)) {}

  /// An address.
  location(std::string address) : held_(std::move(address)) {}

  /// A store of the caller's own, as a shared or unique pointer. The code that
  /// opens the location closes the store.
  template <class Pointer>

  requires std::is_convertible_v<Pointer, std::shared_ptr<Store>>
  location(Pointer own) : held_(std::shared_ptr<Store>(std::move(own))) {}

  /// The object; null if this is an address, or if a null object was given.
  std::shared_ptr<Store> object() const {
    const auto* own = std::get_if<std::shared_ptr<Store>>(&held_);
    return own != nullptr ? *own : nullptr;
  }

  /// The address; null if this is an object.
  const std::string* address() const noexcept {
    return std::get_if<std::string>(&held_);
  }

private:
  std::variant<std::string, std::shared_ptr<Store>> held_;
};

/// The address, or `custom:` for an object.
template <class Store>
std::string name_of(const location<Store>& where) {
  const auto* const address = where.address();
  return address != nullptr ? *address : "custom:";
}

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
  /// and commits fail. While such a store reads a SQLite file, another store of
  /// the same process may fail to write to that file with
  /// `errc::store_failed`.
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
