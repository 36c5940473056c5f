// `--store`, `--durability` and `--log-max`, shared by all commands that use a
// store, and `--artifacts` and `--memory`.

#pragma once

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/open_store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

class store_option {
public:
  /// The default is a SQLite file in the working folder.
  store_option() = default;

  explicit store_option(std::string address) : address_(std::move(address)) {}

  store_option(const store_option&) = delete;
  store_option& operator=(const store_option&) = delete;

  /// Adds the options to `command`. This must outlive the parsing. May be
  /// called for several commands, of which one is chosen. An unknown scheme or
  /// durability does not parse.
  void add_to(CLI::App& command);

  /// Adds `--artifacts` to a command that runs agents, as `add_to` does.
  void add_artifacts_to(CLI::App& command);

  /// Adds `--memory` to a command that uses a store, as `add_to` does.
  void add_memory_to(CLI::App& command);

  /// Adds `--memory` to a command that needs it, as `add_to` does.
  void add_needed_memory_to(CLI::App& command);

  /// The address of the memory; empty if none was given. Not checked.
  const std::string& memory() const noexcept { return memory_; }

  /// The address; only its scheme has been checked.
  const std::string& address() const noexcept { return address_; }

  store_options for_store() const;

  runtime_options for_runtime() const;

private:
  std::string address_ = "sqlite:troupe.db";
  std::string durability_{to_string(store_options().durability)};
  std::optional<std::uint64_t> log_max_; // MiB.
  std::string artifacts_;
  std::string memory_;
};

} // namespace troupe::cli
