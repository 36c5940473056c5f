// The blocking form of a call, made of the form with a completion.

#pragma once

#include "troupe/actors/backend.hpp"
#include "troupe/actors/tool_pool.hpp"

#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace troupe::actors {

/// Calls `start` with a completion and blocks until that is called. Fails with
/// `errc::would_deadlock` on a thread that the answer needs.
template <class T, class Start>
result<T> wait_for(const Start& start) {
  if (detail::is_runtime_thread())
    return error(errc::would_deadlock,
                 "a blocking call on a thread of the runtime; use the form "
                 "with a completion, or co_await the _async form");
  const tool_pool::lend lent;

  struct {
    std::mutex mutex;
    std::condition_variable came;
    std::optional<result<T>> answer;
  } waiting;

  start([&waiting](result<T> answer) {
    // Under the lock to the end: the waiter may go as soon as it is free.
    const std::lock_guard guard(waiting.mutex);
    waiting.answer.emplace(std::move(answer));
    waiting.came.notify_one();
  });
  std::unique_lock guard(waiting.mutex);
  waiting.came.wait(guard, [&waiting] { return waiting.answer.has_value(); });
  return std::move(*waiting.answer);
}

} // namespace troupe::actors
