// Runs tasks that never suspend, for tests.

#pragma once

#include "troupe/contexts/task.hpp"

#include <optional>
#include <stdexcept>
#include <utility>

namespace troupe::testing {

/// Returns the result of a task, or the `troupe::error` that it throws. The
/// task must not suspend.
template <class T>
result<T> now(task<T> work) {
  std::optional<result<T>> outcome;
  start(
    [](task<T> awaited, std::optional<result<T>>& into) -> task<> {
      try {
        into.emplace(co_await awaited);
      } catch (const error& failure) {
        into.emplace(failure);
      }
    }(std::move(work), outcome),
    [](const std::exception_ptr& failure) {
      if (failure)
        std::rethrow_exception(failure);
    });
  if (!outcome)
    throw std::logic_error("the task waits for something");
  return std::move(*outcome);
}

} // namespace troupe::testing
