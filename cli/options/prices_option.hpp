// `--prices`, shared by the commands that show costs.

#pragma once

#include "troupe/load/prices.hpp"

#include <memory>
#include <string>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

struct prices_option {
  std::string file;

  /// Adds the option to `command`. This must outlive the parsing.
  void add_to(CLI::App& command);

  /// Reads the file; null without the option. Fails as `price_list::read` does.
  result<std::shared_ptr<const load::price_list>> read() const;
};

} // namespace troupe::cli
