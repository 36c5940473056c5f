// A thread that waits for one answer, and the waking of many such threads.
//
// A wake-up takes longer than the activation of an owner. So the answering
// thread wakes one of the threads that it has answered, at the end of its
// activation, and each woken thread wakes the next one.

#pragma once

#include <atomic>
#include <memory>

namespace troupe::actors {

/// One wait of one thread for one answer.
class blocked_thread {
public:
  blocked_thread() = default;
  blocked_thread(const blocked_thread&) = delete;
  blocked_thread& operator=(const blocked_thread&) = delete;

  /// Returns true if `wake` was called. Everything that the waking thread wrote
  /// before the call is visible then.
  bool is_woken() const noexcept {
    return state_.load(std::memory_order_acquire) == woken;
  }

  /// Blocks until `wake` is called. Called by one thread, once.
  void wait();

  /// Ends the wait. Called once, by any thread. The object may no longer exist
  /// when this returns.
  void wake() noexcept;

private:
  friend class wake_batch;

  class sleeper;

  enum state : int { waiting, parked, woken };

  std::atomic<int> state_{waiting};
  // Set before the state is `parked`, and taken by the waking thread.
  std::shared_ptr<sleeper> sleeper_;
};

/// While it lives, threads that this thread wakes stay asleep. Its end wakes
/// the first of them, and each wakes the next. Objects of one thread are
/// nested; the outermost one collects.
class wake_batch {
public:
  wake_batch() noexcept;
  ~wake_batch();
  wake_batch(const wake_batch&) = delete;
  wake_batch& operator=(const wake_batch&) = delete;

private:
  friend class blocked_thread;

  void add(std::shared_ptr<blocked_thread::sleeper> woken) noexcept;

  std::shared_ptr<blocked_thread::sleeper> first_;
  blocked_thread::sleeper* last_ = nullptr;
};

} // namespace troupe::actors
