#include "troupe/cli/talk/palette.hpp"

#include <fmt/format.h>

#include <cstdlib>

namespace troupe::cli {

palette palette::of_terminal() {
  // Nothing in the program changes the environment.
  // NOLINTBEGIN(concurrency-mt-unsafe)
  const auto* const unwanted = std::getenv("NO_COLOR");
  const auto* const terminal = std::getenv("TERM");
  // NOLINTEND(concurrency-mt-unsafe)
  return palette((unwanted == nullptr || *unwanted == '\0')
                 && terminal != nullptr
                 && std::string_view(terminal) != "dumb");
}

std::string palette::quiet(std::string_view text) const {
  std::string lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines += in("2", text.substr(0, end));
    if (end == text.npos)
      break;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string palette::in(std::string_view code, std::string_view text) const {
  return has_colours_ && !text.empty()
           ? fmt::format("\033[{}m{}\033[0m", code, text)
           : std::string(text);
}

} // namespace troupe::cli
