// `--store`, `--durability` and `--log-max`, the same for every command that
// keeps state.

#pragma once

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/open_store.hpp"

#include <cstdint>
#include <string>
#include <utility>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class store_option {
public:
  /// With the file of the working folder, unless it is told.
  store_option() = default;

  explicit store_option(std::string address) : address_(std::move(address)) {}

  store_option(const store_option&) = delete;
  store_option& operator=(const store_option&) = delete;

  /// Adds the options to `command`, which must not be parsed once this is
  /// gone. May be called for several commands, of which one is chosen. An
  /// unknown scheme or durability does not parse.
  void add_to(CLI::App& command);

  /// Only the scheme has been checked.
  const std::string& address() const noexcept { return address_; }

  store_options for_store() const;

  runtime_options for_runtime() const;

private:
  std::string address_ = "sqlite:troupe.db";
  std::string durability_{to_string(store_options().durability)};
  std::uint64_t log_max_ = 0; // MiB.
};

} // namespace troupe::cli
