// Ctrl-C and SIGTERM, taken by a thread that waits for them, so that no work is
// done in a signal handler.

#pragma once

#include <atomic>
#include <chrono>
#include <stop_token>
#include <thread>

namespace troupe::cli {

/// Made before any other thread. Before `begin` a signal ends the process at
/// once. From then on the first one requests a stop; the second ends the
/// process, and so do ten seconds without an end, unless that may take longer.
/// Also ignores SIGPIPE and SIGXFSZ, so that a closed pipe and a file that may
/// not grow are errors of the write.
class interrupts {
public:
  interrupts();
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// How long the end may take after the first signal.
  static constexpr std::chrono::seconds forever = std::chrono::seconds::max();

  void set_patience(std::chrono::seconds patience) noexcept {
    patience_ = patience;
  }

  /// From here on there is something to bring to an end.
  void begin() noexcept { begun_ = true; }

  /// Requested by the first signal, on the waiting thread.
  std::stop_token token() const { return stop_.get_token(); }

  /// A file descriptor that becomes readable, and stays so, with the first
  /// signal.
  int descriptor() const noexcept { return descriptor_; }

  /// The signal that came, or 0.
  int signal() const noexcept { return signal_; }

  /// 130 for SIGINT, 143 for SIGTERM.
  static int exit_code(int signal) noexcept { return 128 + signal; }

private:
  void wait();

  int descriptor_;
  std::atomic<int> signal_{0};
  std::atomic<bool> begun_{false};
  std::atomic<bool> done_{false};
  std::atomic<std::chrono::seconds> patience_{std::chrono::seconds(10)};
  std::stop_source stop_;
  std::thread waiting_;
};

} // namespace troupe::cli
