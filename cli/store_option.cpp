#include "troupe/cli/store_option.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace troupe::cli {

void store_option::add_to(CLI::App& command) {
  command
    .add_option("--store",
                address_,
                "Where state is kept: memory:, sqlite:PATH, postgres:URL")
    ->type_name("S")
    ->check([](const std::string& text) {
      return is_store_scheme(text)
               ? std::string()
               : fmt::format("'{}' is none of memory:, sqlite:PATH and "
                             "postgres:URL",
                             text);
    })
    ->capture_default_str();
  command
    .add_option("--durability",
                durability_,
                "What is stored survives: durable: a power failure; os: a "
                "killed process; none: the same, and a power failure may "
                "damage the store")
    ->type_name("durable|os|none")
    ->check([](const std::string& text) {
      return durability_from(text)
               ? std::string()
               : fmt::format("'{}' is none of durable, os and none", text);
    })
    ->capture_default_str();
  command
    .add_option("--log-max",
                log_max_,
                "Size of a SQLite file's write-ahead log (FILE-wal) above "
                "which nothing more is stored, while another program keeps it "
                "from being emptied; 0: no bound")
    ->type_name("MIB")
    ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 40U))
    ->capture_default_str();
}

store_options store_option::for_store() const {
  return {.durability = durability_from(durability_).value(),
          .log_bytes_max = log_max_ << 20U};
}

runtime_options store_option::for_runtime() const {
  runtime_options options;
  options.store = address_;
  // A command has few appends under way, and none to give up.
  options.append_wait_max = {};
  const auto chosen = for_store();
  options.durability = chosen.durability;
  options.store_log_bytes_max = chosen.log_bytes_max;
  return options;
}

} // namespace troupe::cli
