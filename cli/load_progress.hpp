// One line on stderr that says how a load test is going, while a person looks
// at it.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>

namespace troupe::cli {

/// Does nothing when stderr is no terminal.
class load_progress {
public:
  /// `before` stands in front of each line.
  explicit load_progress(std::string before = {});
  load_progress(const load_progress&) = delete;
  load_progress& operator=(const load_progress&) = delete;
  ~load_progress();

  void show(const load::progress& now);

private:
  const bool shown_;
  const std::string before_;
  bool drawn_ = false;
};

} // namespace troupe::cli
