// A call of several steps: a coroutine that awaits one call of the runtime
// after another.

#pragma once

#include "troupe/actors/pending_call.hpp"
#include "troupe/contexts/task.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <utility>

namespace troupe::actors {

template <class T>
class stepwise_call final : public detail::call<T> {
public:
  explicit stepwise_call(task<result<T>> steps) : steps_(std::move(steps)) {}

  void start(completion<T> done) override {
    auto outcome = std::make_shared<std::optional<result<T>>>();
    troupe::start(
      keep(std::move(steps_), outcome),
      [outcome, done = std::move(done)](const std::exception_ptr& thrown) {
        done(thrown ? result<T>(reason_of(thrown)) : std::move(**outcome));
      });
  }

  // The thread is not lent to the owners: it would then be answered inside of
  // an owner, where the next step must not start.
  result<T> wait() override {
    if (detail::is_runtime_thread())
      return would_deadlock();
    const tool_pool::lend slot;
    blocked_thread waiting;
    std::optional<result<T>> answer;
    start([&waiting, &answer](result<T> outcome) {
      answer.emplace(std::move(outcome));
      waiting.wake();
    });
    if (!waiting.is_woken())
      waiting.wait();
    return std::move(*answer);
  }

private:
  static task<> keep(task<result<T>> steps,
                     std::shared_ptr<std::optional<result<T>>> outcome) {
    outcome->emplace(co_await std::move(steps));
  }

  static error reason_of(const std::exception_ptr& thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const error& failure) {
      return failure;
    } catch (const std::exception& failure) {
      return {errc::internal, failure.what()};
    }
  }

  task<result<T>> steps_;
};

template <class T>
pending<T> make_stepwise(task<result<T>> steps) {
  return pending<T>(std::make_unique<stepwise_call<T>>(std::move(steps)));
}

} // namespace troupe::actors
