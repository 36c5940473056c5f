// Ctrl-C and SIGTERM, received by a thread that waits for them. No work is done
// in a signal handler.

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace troupe::cli {

/// Receives signals. Must be made before any other thread.
///
/// Before `begin`, a signal ends the process, after the programs that it has
/// started: they get SIGTERM, and SIGKILL a second later. Afterwards the first
/// signal requests a stop; the process ends at the second one, or when the stop
/// takes longer than the exit timeout (ten seconds by default), and programs
/// that still run get SIGKILL. SIGPIPE and SIGXFSZ are ignored, so that a
/// closed pipe and a size limit are errors of the write.
class interrupts {
public:
  interrupts();
  ~interrupts();
  interrupts(const interrupts&) = delete;
  interrupts& operator=(const interrupts&) = delete;

  /// No limit.
  static constexpr std::chrono::seconds forever = std::chrono::seconds::max();

  /// Also lifts the timeout of a stop that has been requested; a new limit then
  /// counts from the end of the old one.
  void set_exit_timeout(std::chrono::seconds exit_timeout) noexcept {
    exit_timeout_ = exit_timeout;
  }

  /// The error that is reported if the process ends before the command does: at
  /// the second signal, or after the exit timeout. Empty: none.
  void set_early_error(std::string text);

  /// From now on, a signal requests a stop instead of ending the process.
  void begin() noexcept { begun_ = true; }

  /// From now on Ctrl-C calls `on_interrupt`, on the waiting thread, and
  /// requests no stop; an empty function ends that. It must not block.
  void divert(std::function<void()> on_interrupt);

  /// Stop is requested by the first signal, on the waiting thread.
  std::stop_token token() const { return stop_.get_token(); }

  /// A file descriptor that becomes readable at the first signal, and stays so.
  int descriptor() const noexcept { return descriptor_; }

  /// The received signal, or 0.
  int signal() const noexcept { return signal_; }

  /// 130 for SIGINT, 143 for SIGTERM.
  static int exit_code(int signal) noexcept { return 128 + signal; }

private:
  void wait();
  // Returns true if the signal was passed to the function of `divert`.
  bool divert_signal(int received);
  // Returns the signal that ends the process, which is `first` after the
  // timeout.
  int await_end(int first) const;
  [[noreturn]] void end_process(int signal);

  int descriptor_;
  std::atomic<int> signal_{0};
  std::atomic<bool> begun_{false};
  std::atomic<bool> done_{false};
  std::atomic<std::chrono::seconds> exit_timeout_{std::chrono::seconds(10)};
  std::stop_source stop_;
  std::mutex mutex_; // Guards the next two.
  std::function<void()> on_interrupt_;
  std::string early_error_;
  std::thread waiting_;
};

} // namespace troupe::cli
