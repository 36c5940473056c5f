// A process that answers like a streaming model. A separate process, so that
// its memory and CPU time do not count for the client.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace bench {

/// Answers each POST to one of its paths with a stream of chat completions:
/// `events` of them, in `pieces` pieces, 10 ms apart.
class answering_process {
public:
  static constexpr std::size_t events = 20;
  static constexpr std::size_t pieces = 4;

  /// Forks, so call it while the process has one thread.
  answering_process();
  answering_process(const answering_process&) = delete;
  answering_process& operator=(const answering_process&) = delete;
  ~answering_process();

  /// The first event comes after 100 ms.
  std::string late() const { return url("late"); }

  /// The first event comes after 50 to 150 ms, spread evenly.
  std::string spread() const { return url("spread"); }

  /// No event ever comes.
  std::string silent() const { return url("silent"); }

  /// Waits until all connections are closed. The server has room for twice the
  /// number of connections of one round.
  void wait_until_idle() const;

private:
  std::string url(const char* path) const;

  int port_ = 0;
  int lifeline_ = -1; // Closing it ends the process.
  pid_t process_ = -1;
};

/// Age of an event whose text begins with the time of sending; at least zero
/// for other texts.
std::chrono::nanoseconds age_of(const std::string& text);

} // namespace bench
