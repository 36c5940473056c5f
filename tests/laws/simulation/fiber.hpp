// A fiber: code with a stack of its own that can be suspended and resumed, all
// on one thread.

#pragma once

#include <ucontext.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::testing {

/// Runs one piece of work after another, each given by `start`.
class fiber {
public:
  fiber();
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Runs `work` until it ends or calls `leave`; returns true if it ended.
  /// `work` must not throw.
  bool start(std::function<void()> work);

  /// Resumes the suspended work; returns true if it ended.
  bool go_on();

  /// Suspends the running work; called by the work itself.
  void leave();

private:
  // The state of exception handling that the language keeps per thread.
  using handled = std::array<void*, 2>;

  static void enter(unsigned high, unsigned low);
  void run();
  bool switch_in();
  void switch_out();

  static constexpr std::size_t stack_bytes = std::size_t{512} * 1024;

  void* const stack_;
  ucontext_t inside_{};
  ucontext_t outside_{};
  std::function<void()> work_;
  bool has_ended_ = false;
  handled handled_inside_{};
  handled handled_outside_{};
  // AddressSanitizer keeps a stack of its own beside each stack.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

} // namespace troupe::testing
