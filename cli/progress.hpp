// One line on stderr that says what a run is doing, while a person looks at it.

#pragma once

#include "troupe/cli/screen_line.hpp"

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

namespace troupe::cli {

/// Shows agents running, time, events and the latest words of one run, some ten
/// times a second, and is gone when it ends. Does nothing when stderr is no
/// terminal.
class progress {
public:
  progress();
  ~progress();
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;

  /// What to call when an agent starts or ends; from any thread, and also after
  /// this has ended.
  std::function<void(std::string_view agent, bool started)> on_agent() const;

  void count_event();

  /// One piece of what `author` is saying; `count_event` ends it.
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
  /// What the line tells; shared with the run, which may outlast it.
  struct tally {
    std::mutex mutex;
    std::map<std::string, std::size_t, std::less<>> running;
    std::size_t events = 0;
    std::string author;
    std::string words; // The latest ones.
  };

  void keep_drawing();
  std::string text() const;

  const std::chrono::steady_clock::time_point started_;
  const std::shared_ptr<tally> tally_;
  // Guards what is on the screen and `ended_`; a terminal that has stopped
  // holds up nobody but writers.
  std::mutex screen_;
  screen_line line_;
  bool ended_ = false;
  std::condition_variable end_;
  std::thread drawing_;
};

} // namespace troupe::cli
