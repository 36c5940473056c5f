// Progress of a load test, on one line of a terminal.

#pragma once

#include "troupe/cli/terminal/screen_line.hpp"
#include "troupe/load/load_test.hpp"

#include <string>
#include <utility>

namespace troupe::cli {

class load_progress {
public:
  /// `before` is printed in front of each line.
  explicit load_progress(std::string before = {})
    : before_(std::move(before)) {}

  void show(const load::progress& now);

private:
  const std::string before_;
  screen_line line_;
};

} // namespace troupe::cli
