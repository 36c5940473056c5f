// Code with a stack of its own, which can be left in the middle and gone on
// with, all on one thread.

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

  /// Runs `work`, which does not throw, until it ends or is left; whether it
  /// has ended.
  bool start(std::function<void()> work);

  /// Goes on with work that was left.
  bool go_on();

  /// Leaves the work that runs; called by it.
  void leave();

private:
  // What the language keeps per thread about exceptions that are being handled.
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
  // Of AddressSanitizer, which keeps a stack of its own beside each.
  void* fake_inside_ = nullptr;
  void* fake_outside_ = nullptr;
  const void* outside_stack_ = nullptr;
  std::size_t outside_bytes_ = 0;
};

} // namespace troupe::testing
