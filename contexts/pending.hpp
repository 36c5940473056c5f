// A call that has not started, and its answer. Every call that may wait
// returns one.
//
//   auto made = sessions.create({"press", "ann"}).get();    // blocks
//   sessions.append_event(key, event).then(print_outcome);  // calls back
//   auto stored = co_await sessions.append_event(key, event);

#pragma once

#include "troupe/contexts/recycled.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/core/error.hpp"

#include <atomic>
#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe {

/// Receives the result of a call, once. It is called on a thread of the
/// runtime, or, if the result is known at once, on the caller's thread before
/// the call returns. It must not block and must not throw.
template <class T>
using completion = std::function<void(result<T>)>;

namespace detail {

// A call that has not started. `start` or `wait` is called once, unless
// `answer_now` has returned the answer.
template <class T>
class call : public recycled {
public:
  call() = default;
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  virtual ~call() = default;

  // Makes the call at once if that needs no other thread, and returns its
  // answer. Without an answer the call has not started.
  virtual std::optional<result<T>> answer_now() { return std::nullopt; }

  // Starts the call; `done` gets the answer, on any thread.
  virtual void start(completion<T> done) = 0;

  // Starts the call and blocks for the answer.
  virtual result<T> wait() = 0;

  // Called on the thread of a coroutine that awaits the call, before the
  // coroutine gets the answer.
  virtual void receive(const result<T>& /*answer*/) {}
};

// Returns true if a coroutine may get an answer on its own thread without
// suspension. A coroutine that never suspends keeps its thread, so a thread
// answers only a limited number of calls in a row like this.
bool may_answer_now() noexcept;

// Counts a call that the calling thread awaits.
void note_await(bool answered_now) noexcept;

// The awaiter of a call. The coroutine continues on its lane.
template <class T>
class call_awaiter {
public:
  explicit call_awaiter(std::unique_ptr<call<T>> awaited)
    : call_(std::move(awaited)) {}

  call_awaiter(const call_awaiter&) = delete;
  call_awaiter& operator=(const call_awaiter&) = delete;

  bool await_ready() {
    if (may_answer_now())
      answer_ = call_->answer_now();
    note_await(answer_.has_value());
    return answer_.has_value();
  }

  // Returns false if the answer came at once, so that the coroutine continues
  // without suspension.
  bool await_suspend(std::coroutine_handle<> waiting) {
    waiting_ = waiting;
    lane_ = executor::current();
    // The capture is one pointer, which a function object holds without
    // an allocation.
    call_->start(completion<T>([this](result<T> answer) {
      answer_.emplace(std::move(answer));
      if (!met_.exchange(true, std::memory_order_acq_rel))
        return; // The coroutine has not suspended yet and continues.
      if (lane_ != nullptr)
        lane_->post(waiting_);
      else
        waiting_.resume();
    }));
    return !met_.exchange(true, std::memory_order_acq_rel);
  }

  result<T> await_resume() {
    call_->receive(*answer_);
    return std::move(*answer_);
  }

private:
  const std::unique_ptr<call<T>> call_;
  std::optional<result<T>> answer_;
  std::coroutine_handle<> waiting_;
  executor* lane_ = nullptr;
  std::atomic<bool> met_{false}; // False until it is answered or suspended.
};

} // namespace detail

/// A call that has not started, and its answer. `get`, `value`, `then` or
/// `co_await` asks for the answer, which starts the call; without one of them
/// the call never starts. Calls take effect in the order in which they start.
/// The answer can be asked for once; the second time fails with
/// `errc::invalid_argument`. Not thread-safe, but it may be moved to another
/// thread. It keeps its arguments alive, and the parts of the runtime that it
/// needs.
template <class T>
class [[nodiscard]] pending {
public:
  /// Wraps a call. Made by the functions that return it.
  explicit pending(std::unique_ptr<detail::call<T>> made) noexcept
    : call_(std::move(made)) {}

  /// Starts the call and blocks until it is answered. Fails with
  /// `errc::would_deadlock`, and does not start the call, on a thread of the
  /// runtime, which the answer may need: use `then` or `co_await` there.
  result<T> get() { return take()->wait(); }

  /// Like `get`, but throws the `troupe::error` of a failure.
  T value() { return get().value(); }

  /// Starts the call and returns at once. `done` gets the answer on a thread of
  /// the runtime, or inside this call if it is known at once. It must not block
  /// and must not throw. It may be empty.
  void then(completion<T> done) {
    if (!done)
      done = [](result<T>) {};
    take()->start(std::move(done));
  }

  /// Starts the call, for `co_await`, which returns a `result<T>`. The
  /// coroutine of an agent continues on its lane, any other on a thread of the
  /// runtime. If the answer is known at once, the coroutine continues without
  /// suspension.
  auto operator co_await() { return detail::call_awaiter<T>(take()); }

  /// Does not compile, since the call has not been made yet. The error names
  /// the ways to ask for its answer.
  template <class U = T>
  const U* operator->() const {
    static_assert(!std::is_same_v<U, T>,
                  "this call is made when its answer is asked for: .value() "
                  "waits and throws the error of a failure, .get() waits for a "
                  "result, .then(done) calls back, and a coroutine writes "
                  "co_await");
    return nullptr;
  }

private:
  // Stands in for a call whose answer was already asked for.
  struct asked_twice final : detail::call<T> {
    static error reason() {
      return {errc::invalid_argument,
              "the answer of this call was asked for already"};
    }

    void start(completion<T> done) override { done(reason()); }

    result<T> wait() override { return reason(); }
  };

  std::unique_ptr<detail::call<T>> take() {
    if (!call_)
      return std::make_unique<asked_twice>();
    return std::move(call_);
  }

  std::unique_ptr<detail::call<T>> call_;
};

} // namespace troupe
