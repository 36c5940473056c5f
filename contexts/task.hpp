// A coroutine that is awaited: the form of an agent's body and of every
// asynchronous function that it calls.

#pragma once

#include "troupe/contexts/recycled.hpp"
#include "troupe/core/error.hpp"

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace troupe {

/// Resumes suspended coroutines: a lane resumes its own coroutine, the threads
/// of the runtime resume all others.
class executor {
public:
  virtual ~executor() = default;

  /// Resumes `suspended` soon; never inside this call.
  virtual void post(std::coroutine_handle<> suspended) = 0;

  /// Returns the executor of the coroutine that this thread is running,
  /// or null.
  static executor* current() noexcept;

  /// Makes an executor current for the lifetime of this object.
  class current_guard {
  public:
    /// Makes `entered` current on this thread; null for none. The destructor
    /// restores the executor that was current before.
    explicit current_guard(executor* entered) noexcept;
    ~current_guard();
    current_guard(const current_guard&) = delete;
    current_guard& operator=(const current_guard&) = delete;

  private:
    executor* before_;
  };
};

template <class T = void>
class task;

namespace detail {

// The frame of a coroutine is made by the `operator new` of its promise.
struct task_promise_base : recycled {
  std::coroutine_handle<> continuation = std::noop_coroutine();

  std::suspend_always initial_suspend() const noexcept { return {}; }

  struct resume_continuation {
    bool await_ready() const noexcept { return false; }

    template <class Promise>
    std::coroutine_handle<>
    await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      return finished.promise().continuation;
    }

    void await_resume() const noexcept {}
  };

  resume_continuation final_suspend() const noexcept { return {}; }
};

template <class T>
struct task_promise : task_promise_base {
  std::variant<std::monostate, T, std::exception_ptr> outcome;

  task<T> get_return_object() noexcept;

  template <class U>
  void return_value(U&& made) {
    outcome.template emplace<1>(std::forward<U>(made));
  }

  void unhandled_exception() noexcept {
    outcome.template emplace<2>(std::current_exception());
  }

  T take() {
    if (outcome.index() == 2)
      std::rethrow_exception(std::get<2>(outcome));
    return std::move(std::get<1>(outcome));
  }
};

template <>
struct task_promise<void> : task_promise_base {
  std::exception_ptr failure;

  task<void> get_return_object() noexcept;

  void return_void() const noexcept {}

  void unhandled_exception() noexcept { failure = std::current_exception(); }

  void take() const {
    if (failure)
      std::rethrow_exception(failure);
  }
};

} // namespace detail

/// A coroutine that starts when it is awaited. The await returns a `T`, or
/// throws the exception of the body. The task owns its frame: destroying it
/// before the end destroys the coroutine and everything that it awaits. It may
/// be awaited at most once.
template <class T>
class [[nodiscard]] task {
public:
  /// The promise, under the name that the language requires.
  using promise_type = detail::task_promise<T>;
  /// Handle of the coroutine's frame.
  using handle = std::coroutine_handle<promise_type>;

  task() = default;

  /// Takes ownership of a frame that has not started.
  explicit task(handle frame) noexcept : frame_(frame) {}

  /// Moves the frame; `other` is empty then and cannot be awaited.
  task(task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}

  /// Destroys the own frame and takes that of `other`.
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      if (frame_)
        frame_.destroy();
      frame_ = std::exchange(other.frame_, {});
    }
    return *this;
  }

  ~task() {
    if (frame_)
      frame_.destroy();
  }

  /// Returns false: the coroutine starts only by the await.
  bool await_ready() const noexcept { return false; }

  /// Starts the coroutine on this thread. `awaiting` continues at its end.
  std::coroutine_handle<>
  await_suspend(std::coroutine_handle<> awaiting) const noexcept {
    frame_.promise().continuation = awaiting;
    return frame_;
  }

  /// Returns the outcome of the body, or throws its exception.
  T await_resume() const { return frame_.promise().take(); }

private:
  handle frame_;
};

namespace detail {

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

} // namespace detail

/// Starts `work` now, on this thread, and calls `done(std::exception_ptr)` when
/// it has ended; the pointer is null on success. The frame is destroyed at its
/// end. The work belongs to no lane, even if an agent starts it: it continues
/// on the runtime's threads after each await.
template <class Done>
void start(task<void> work, Done done);

namespace detail {

// A coroutine that is not awaited; its frame destroys itself.
struct detached {
  struct promise_type : recycled {
    detached get_return_object() const noexcept { return {}; }

    std::suspend_never initial_suspend() const noexcept { return {}; }

    std::suspend_never final_suspend() const noexcept { return {}; }

    void return_void() const noexcept {}

    void unhandled_exception() const noexcept { std::terminate(); }
  };
};

template <class Done>
detached run_detached(task<void> work, Done done) {
  std::exception_ptr failure;
  try {
    co_await work;
  } catch (...) {
    failure = std::current_exception();
  }
  done(failure);
}

} // namespace detail

template <class Done>
void start(task<void> work, Done done) {
  const executor::current_guard nowhere(nullptr);
  detail::run_detached(std::move(work), std::move(done));
}

} // namespace troupe
