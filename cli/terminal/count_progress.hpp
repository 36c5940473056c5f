// Progress of work on many things, on one line of a terminal.

#pragma once

#include "troupe/cli/terminal/screen_line.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>

namespace troupe::cli {

/// Shows "imported 3 of 40 sessions". Does nothing if stderr is not a terminal.
/// For one thread at a time.
class count_progress {
public:
  /// `done` is the participle, `things` the noun.
  count_progress(std::string done, std::size_t total, std::string things)
    : done_(std::move(done)),
      total_(total),
      things_(std::move(things)) {}

  /// Draws the line, at most ten times a second.
  void show(std::size_t count);

  /// Takes the line off the screen, so that output on the same terminal does
  /// not mix with it.
  void clear() { line_.clear(); }

private:
  const std::string done_;
  const std::size_t total_;
  const std::string things_;
  screen_line line_;
  std::chrono::steady_clock::time_point drawn_{};
};

} // namespace troupe::cli
