// A function of the user's, and the one line that a compiler prints when it has
// another shape.
//
// Without it, a wrong callback fails with "no matching function" and pages of
// candidates. Here every callable with a readable signature is accepted first.
// A `static_assert` then refuses a wrong one and shows the wanted shape.

#pragma once

#include <functional>
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

} // namespace troupe
