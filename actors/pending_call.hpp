// Makes the answer of a call of the runtime from a function that starts it.

#pragma once

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/blocked_thread.hpp"
#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/engine/tool_pool.hpp"
#include "troupe/contexts/pending.hpp"

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe::actors {

/// The error of a blocking call on a thread that the answer may need.
inline error would_deadlock() {
  return {
    errc::would_deadlock,
    "this call would block a thread of the runtime; use then or co_await"};
}

/// Calls `start` with a completion, and blocks until that is called. Meanwhile
/// the calling thread runs the activations of the owners that the call wakes.
/// Fails with `errc::would_deadlock` on a thread of the runtime.
template <class T, class Start>
result<T> wait_for(execution& on, Start&& start) {
  if (detail::is_runtime_thread())
    return would_deadlock();
  const tool_pool::lend slot;
  blocked_thread waiting;
  std::optional<result<T>> answer;
  {
    lent_thread lent(on);
    start([&waiting, &answer](result<T> outcome) {
      answer.emplace(std::move(outcome));
      waiting.wake();
    });
    while (!waiting.is_woken() && (lent.run_next() || lent.work_next())) {
    }
  }
  if (!waiting.is_woken())
    waiting.wait();
  return std::move(*answer);
}

/// A call that a function object starts on the owners of a runtime. The object
/// takes a `completion<T>`, is called once, and keeps the runtime's data alive.
/// If it has a member `answer_now`, that member makes the call where no other
/// thread is needed.
template <class T, class Start>
class pending_call final : public detail::call<T> {
public:
  template <class... Arguments>
  explicit pending_call(execution& on, Arguments&&... arguments)
    : on_(on),
      start_(std::forward<Arguments>(arguments)...) {}

  std::optional<result<T>> answer_now() override {
    if constexpr (requires { start_.answer_now(); })
      return start_.answer_now();
    else
      return std::nullopt;
  }

  void start(completion<T> done) override { start_(std::move(done)); }

  result<T> wait() override {
    if (detail::is_runtime_thread())
      return would_deadlock();
    if (auto known = answer_now())
      return *std::move(known);
    return wait_for<T>(on_, start_);
  }

private:
  execution& on_;
  Start start_;
};

/// Makes a call whose function object is constructed in place from `arguments`.
template <class T, class Start, class... Arguments>
pending<T> emplace_pending(execution& on, Arguments&&... arguments) {
  return pending<T>(std::make_unique<pending_call<T, Start>>(
    on, std::forward<Arguments>(arguments)...));
}

template <class T, class Start>
pending<T> make_pending(execution& on, Start&& start) {
  return emplace_pending<T, std::remove_cvref_t<Start>>(
    on, std::forward<Start>(start));
}

} // namespace troupe::actors
