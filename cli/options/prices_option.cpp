#include "troupe/cli/options/prices_option.hpp"

#include <CLI/CLI.hpp>

#include <utility>

namespace troupe::cli {

void prices_option::add_to(CLI::App& command) {
  command
    .add_option("--prices",
                file,
                "File with prices of models for a million tokens, YAML or "
                "JSON: costs are shown")
    ->type_name("FILE");
}

result<std::shared_ptr<const load::price_list>> prices_option::read() const {
  if (file.empty())
    return std::shared_ptr<const load::price_list>();
  auto prices = load::price_list::read(file);
  if (!prices)
    return prices.error();
  return std::make_shared<const load::price_list>(std::move(*prices));
}

} // namespace troupe::cli
