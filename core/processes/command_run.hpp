// A program that runs once, from its input to its end.
//
// The process is always waited for, and all processes of its group end with it.
// No thread waits for a program: one thread serves all of them.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/processes/child_process.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace troupe::processes {

struct command_limits {
  /// Limit of the bytes on stdout. A program that writes more is ended.
  std::size_t output_bytes_max = std::size_t{256} << 10U;
  /// The time to end after SIGTERM. Then SIGKILL is sent.
  std::chrono::milliseconds grace{2'000};
  /// True: failures never show the text on stdout.
  bool output_is_secret = false;
};

/// One run of a program. Thread-safe.
class command_run {
public:
  /// Receives the text on stdout, or the failure: `errc::tool_failed` if the
  /// program cannot be started, or ends with another exit status than 0 or by a
  /// signal, with the end of its stderr; `errc::too_large` for more output than
  /// the limit; the reason given to `stop`. Called once. It must not block and
  /// must not throw.
  using completion = std::function<void(result<std::string> outcome)>;

  /// Prepares the run; starts nothing.
  command_run(program started,
              std::string input,
              command_limits limits,
              completion done);
  command_run(const command_run&) = delete;
  command_run& operator=(const command_run&) = delete;
  ~command_run();

  /// Starts the program. `input` is written to its stdin, which is then closed.
  /// `done` is called on the thread of all programs, when the program has ended
  /// or was not started. Call it once.
  void start();

  /// Ends the program: SIGTERM for its process group, and SIGKILL after the
  /// grace. `why` is then its outcome. Does nothing after the end.
  void stop(error why);

private:
  class process;

  const std::shared_ptr<process> process_;
};

} // namespace troupe::processes
