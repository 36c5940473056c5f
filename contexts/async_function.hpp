// Functions of the user's: `plain_function`, and `async_function`, which may be
// a coroutine.
//
// A `std::function` refuses a wrong callback with "no matching function" and
// pages of candidates. These two accept every callable with a readable
// signature first, and then refuse a wrong one by a `static_assert` that shows
// the wanted shape.

#pragma once

#include "troupe/contexts/task.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace troupe {

/// A callable with one signature: a function, or a class with one call operator
/// that is no template, such as a lambda without `auto` parameters.
template <class Callable>
concept has_signature = requires(Callable called) {
  std::function(std::move(called));
};

namespace detail {

// Shows the wanted shape of the functions with a signature. Specialized where
// the signature has a name.
template <class Signature>
struct wanted {
  template <bool Fits>
  static constexpr void check() {
    static_assert(Fits,
                  "this function has other parameters or returns another type "
                  "than is wanted here; the lines above show the place");
  }
};

} // namespace detail

template <class Signature>
class plain_function;

/// A `std::function` that refuses a callable of another shape with one line
/// that shows the wanted one.
template <class Result, class... Arguments>
class plain_function<Result(Arguments...)>
  : public std::function<Result(Arguments...)> {
public:
  /// Makes an empty one, which must not be called.
  plain_function() = default;

  /// Makes an empty one, which must not be called.
  plain_function(std::nullptr_t) {}

  /// Takes a callable. An empty `std::function` makes an empty one.
  template <class Callable>

  requires(
    !std::is_same_v<
      std::remove_cvref_t<Callable>,
      plain_function> && (std::is_invocable_r_v<Result, std::remove_cvref_t<Callable>&, Arguments...> || has_signature<Callable>))
    plain_function(Callable called)
    : std::function<Result(Arguments...)>(checked(std::move(called))) {}

private:
  template <class Callable>
  static auto checked(Callable called) {
    constexpr bool fits
      = std::is_invocable_r_v<Result, Callable&, Arguments...>;
    detail::wanted<Result(Arguments...)>::template check<fits>();
    // An empty function in place of one that does not fit: no second error.
    if constexpr (fits)
      return called;
    else
      return std::function<Result(Arguments...)>();
  }
};

template <class Signature>
class async_function;

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
inline constexpr bool may_be_empty = std::is_pointer_v<T>;
template <class Signature>
inline constexpr bool may_be_empty<std::function<Signature>> = true;
template <class Signature>
inline constexpr bool may_be_empty<plain_function<Signature>> = true;

// Result types of a callable: a `Result`, a task of one, or nothing if `Result`
// is optional.
template <class Returned, class Result>
concept answers = std::is_convertible_v<Returned, Result> || std::is_same_v<
  Returned,
  task<Result>> ||(std::is_void_v<Returned>&& is_optional<Result>);

template <class Callable, class Result, class... Arguments>
concept fits
  = !std::is_same_v<
      Callable,
      async_function<Result(
        Arguments...)>> && std::is_invocable_v<Callable&, Arguments...> && answers<std::invoke_result_t<Callable&, Arguments...>, Result>;

} // namespace detail

/// A function or a coroutine with the given arguments. It returns a `Result`,
/// or a `task<Result>`, which can wait without holding a thread. If `Result` is
/// a `std::optional`, the callable may also return `void`, which means no
/// value; if it is `void`, the callable returns nothing. A copy has a copy of
/// the callable; calls are as thread-safe as the callable.
template <class Result, class... Arguments>
class async_function<Result(Arguments...)> {
public:
  /// Makes an empty one, which must not be called.
  async_function() = default;

  /// Makes an empty one, which must not be called.
  async_function(std::nullptr_t) {}

  /// Takes a callable. One of another shape does not compile.
  template <class Callable>

  requires(
    !std::is_same_v<
      std::remove_cvref_t<Callable>,
      async_function> && (detail::fits<std::remove_cvref_t<Callable>, Result, Arguments...> || has_signature<Callable>))
    async_function(Callable called) {
    constexpr bool fits = detail::fits<Callable, Result, Arguments...>;
    detail::wanted<Result(Arguments...)>::template check<fits>();
    if constexpr (fits)
      take(std::move(called));
  }

  /// Returns true if a callable is set.
  explicit operator bool() const noexcept { return function_ || coroutine_; }

  /// Returns true if it is a coroutine, which holds no thread while it waits.
  bool is_coroutine() const noexcept { return static_cast<bool>(coroutine_); }

  /// Makes the task of one call. A plain function, or the body of a coroutine,
  /// runs when the task is awaited. Arguments that are references must live
  /// until the task has ended. The task throws the exceptions of the callable.
  task<Result> operator()(Arguments... arguments) const {
    return function_ ? call_function(arguments...) : coroutine_(arguments...);
  }

private:
  template <class Callable>
  void take(Callable called) {
    using returned = std::invoke_result_t<Callable&, Arguments...>;
    if constexpr (detail::may_be_empty<Callable>) {
      if (!called)
        return;
    }
    if constexpr (std::is_same_v<returned, task<Result>>)
      coroutine_ = std::move(called);
    else if constexpr (std::is_void_v<returned> && !std::is_void_v<Result>)
      function_ =
        [called = std::move(called)](Arguments... arguments) mutable -> Result {
        called(arguments...);
        return std::nullopt;
      };
    else
      function_ = std::move(called);
  }

  task<Result> call_function(Arguments... arguments) const {
    co_return function_(arguments...);
  }

  std::function<Result(Arguments...)> function_;
  std::function<task<Result>(Arguments...)> coroutine_;
};

} // namespace troupe
