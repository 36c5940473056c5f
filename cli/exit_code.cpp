#include "troupe/cli/exit_code.hpp"

#include <algorithm>
#include <cstdio>
#include <string>

namespace troupe::cli {

int report(const error& failure, int code) {
  auto line = "error: " + to_string(failure);
  std::ranges::replace_if(
    line, [](char next) { return next == '\n' || next == '\r'; }, ' ');
  line += '\n';
  std::fputs(line.c_str(), stderr);
  return code;
}

} // namespace troupe::cli
