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
}

store_options store_option::for_store() const {
  return {.durability = durability_from(durability_).value()};
}

runtime_options store_option::for_runtime() const {
  runtime_options options;
  options.store = address_;
  // A command has few appends under way, and none to give up.
  options.append_wait_max = {};
  options.durability = for_store().durability;
  return options;
}

} // namespace troupe::cli
