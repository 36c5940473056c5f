// A process that answers as a streaming model does, so that neither its memory
// nor its work is counted as the client's.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <string>

namespace bench {

/// Answers every POST below one of its paths with a stream of chat completions,
/// `events` of them in `pieces` pieces 10 ms apart.
class answering_process {
public:
  static constexpr std::size_t events = 20;
  static constexpr std::size_t pieces = 4;

  /// Forks: only while the process has one thread.
  answering_process();
  answering_process(const answering_process&) = delete;
  answering_process& operator=(const answering_process&) = delete;
  ~answering_process();

  /// The first event comes after 100 ms.
  std::string late() const { return url("late"); }

  /// The first event comes after 50 to 150 ms, spread evenly.
  std::string spread() const { return url("spread"); }

  /// Nothing ever comes.
  std::string silent() const { return url("silent"); }

  /// Until it has seen that all connections are closed: it has a place for two
  /// times as many only.
  void wait_until_idle() const;

private:
  std::string url(const char* path) const;

  int port_ = 0;
  int lifeline_ = -1; // Closed, it ends the process.
  pid_t process_ = -1;
};

/// How long ago an event was sent whose text begins with when that was; for
/// other texts nothing below zero.
std::chrono::nanoseconds age_of(const std::string& text);

} // namespace bench
