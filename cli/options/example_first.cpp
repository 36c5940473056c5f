#include "troupe/cli/options/example_first.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <sstream>
#include <utility>

namespace troupe::cli {

namespace {

class example_first final : public CLI::Formatter {
public:
  explicit example_first(std::string example) : example_(std::move(example)) {}

  std::string make_help(const CLI::App* command,
                        std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub)
      return Formatter::make_help(command, std::move(name), mode);
    std::string text = "Example:\n";
    std::istringstream lines(example_);
    for (std::string line; std::getline(lines, line);)
      text += "  " + line + '\n';
    return text + '\n' + Formatter::make_help(command, std::move(name), mode);
  }

private:
  const std::string example_;
};

} // namespace

void show_example(CLI::App& command, std::string example) {
  command.formatter(std::make_shared<example_first>(std::move(example)));
}

} // namespace troupe::cli
