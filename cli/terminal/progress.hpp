// One line on stderr that shows the progress of a run on a terminal.

#pragma once

#include "troupe/agents/plugin.hpp"
#include "troupe/cli/terminal/screen_line.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace troupe::cli {

/// The running agents of a runtime, by name. Thread-safe.
class running_agents {
public:
  /// A plugin that counts into `counted`.
  static plugin observer(std::shared_ptr<running_agents> counted);

  /// Their names, in order, each once.
  std::vector<std::string> names() const;

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> running_;
};

/// Shows running agents, time, number of events and the latest words of one
/// run, about ten times a second. The line is removed at the end. Does nothing
/// if stderr is not a terminal.
class progress {
public:
  /// `counted` is shared with a plugin that counts the running agents.
  explicit progress(std::shared_ptr<running_agents> counted);
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  void count_event();

  /// Adds a piece of text by `author`; `count_event` ends it.
  void hear(std::string_view author, std::string_view words);

  /// Runs `write` while the line is off the screen, so that the two do not mix
  /// on one terminal.
  template <class Write>
  auto without_line(Write write) {
    const std::lock_guard guard(screen_);
    line_.clear();
    return write();
  }

private:
  void keep_drawing();
  std::string text();

  const std::chrono::steady_clock::time_point started_;
  const std::shared_ptr<running_agents> agents_;
  std::mutex mutex_; // Guards the next three.
  std::size_t events_ = 0;
  std::string author_;
  std::string words_; // The latest ones.
  // Guards the screen and `ended_`. A terminal that has stopped blocks only
  // threads that write to it.
  std::mutex screen_;
  screen_line line_;
  bool ended_ = false;
  std::condition_variable end_;
  std::thread drawing_;
};

} // namespace troupe::cli
