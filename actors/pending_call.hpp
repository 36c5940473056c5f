// Makes the answer of a call of the runtime from a function that starts it.

#pragma once

#include "troupe/actors/backend.hpp"
#include "troupe/actors/engine/tool_pool.hpp"
#include "troupe/contexts/pending.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe::actors {

/// The error of a blocking call on a thread that the answer may need.
inline error would_deadlock() {
  return {errc::would_deadlock,
          "a blocking call on a thread of the runtime; use then or co_await"};
}

/// Calls `start` with a completion, and blocks until that is called. Fails with
/// `errc::would_deadlock` on a thread of the runtime.
template <class T, class Start>
result<T> wait_for(Start&& start) {
  if (detail::is_runtime_thread())
    return would_deadlock();
  const tool_pool::lend lent;

  struct {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<result<T>> answer;
  } waiting;

  start([&waiting](result<T> answer) {
    // The lock is held until after the notification: the waiter destroys
    // `waiting` as soon as it gets the lock.
    const std::lock_guard guard(waiting.mutex);
    waiting.answer.emplace(std::move(answer));
    waiting.came.notify_one();
  });
  std::unique_lock guard(waiting.mutex);
  waiting.came.wait(guard, [&waiting] { return waiting.answer.has_value(); });
  return std::move(*waiting.answer);
}

/// A call that a function object starts. It takes a `completion<T>` and is
/// called once.
template <class T, class Start>
class pending_call final : public detail::call<T> {
public:
  template <class... Arguments>
  explicit pending_call(Arguments&&... arguments)
    : start_(std::forward<Arguments>(arguments)...) {}

  void start(completion<T> done) override { start_(std::move(done)); }

  result<T> wait() override { return wait_for<T>(start_); }

private:
  Start start_;
};

/// Makes the function object of a call in its place.
template <class T, class Start, class... Arguments>
pending<T> emplace_pending(Arguments&&... arguments) {
  return pending<T>(std::make_unique<pending_call<T, Start>>(
    std::forward<Arguments>(arguments)...));
}

template <class T, class Start>
pending<T> make_pending(Start&& start) {
  return emplace_pending<T, std::remove_cvref_t<Start>>(
    std::forward<Start>(start));
}

} // namespace troupe::actors
