#include "troupe/cli/options/store_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace troupe::cli {

namespace {

const std::string memory_places
  = "Where memories of users are kept: memory:, sqlite:PATH (a file of their "
    "own), postgres:URL";

} // namespace

void store_option::add_to(CLI::App& command) {
  command
    .add_option("--store",
                address_,
                "Where state is kept: memory:, sqlite:PATH, postgres:URL, or "
                "apps:FILE, a file of rules that place apps in several "
                "databases")
    ->type_name("S")
    ->check([](const std::string& text) {
      const auto read = read_store_address(text);
      // A forbidden path is not a wrong command line.
      return read || is_store_scheme(text) ? std::string()
                                           : read.error().message();
    })
    ->capture_default_str();
  command
    .add_option("--durability",
                durability_,
                "Faults that stored events survive: durable: a power failure; "
                "os: a killed process; none: a killed process, but a power "
                "failure may damage the store")
    ->type_name("durable|os|none")
    ->check([](const std::string& text) {
      return durability_from(text)
               ? std::string()
               : fmt::format("'{}' is not one of durable, os, none", text);
    })
    ->capture_default_str();
  command
    .add_option("--log-max",
                log_max_,
                "Limit of a SQLite file's write-ahead log (FILE-wal), which "
                "grows while another program reads the file; above it nothing "
                "more is stored. Not given: no limit")
    ->type_name("MIB")
    ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40U));
}

void store_option::add_artifacts_to(CLI::App& command) {
  command
    .add_option("--artifacts",
                artifacts_,
                "Where artifacts are kept: memory: or file:PATH; default: "
                "memory: with --store memory:, else none are kept")
    ->type_name("A");
}

void store_option::add_memory_to(CLI::App& command) {
  command
    .add_option("--memory",
                memory_,
                memory_places
                  + "; default: memory: with --store memory:, else none are "
                    "kept")
    ->type_name("M");
}

void store_option::add_needed_memory_to(CLI::App& command) {
  command.add_option("--memory", memory_, memory_places)
    ->required()
    ->type_name("M");
}

store_options store_option::for_store() const {
  store_options options{.durability = durability_from(durability_).value()};
  if (log_max_)
    options.log_bytes_max = *log_max_ << 20U;
  return options;
}

runtime_options store_option::for_runtime() const {
  runtime_options options;
  options.store = address_;
  options.artifacts = artifacts_;
  options.memory = memory_;
  // Commands have few appends under way and give none up.
  options.append_wait_max = {};
  const auto chosen = for_store();
  options.durability = chosen.durability;
  options.store_log_bytes_max = chosen.log_bytes_max;
  return options;
}

} // namespace troupe::cli
