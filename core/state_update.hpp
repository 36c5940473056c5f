// A function that computes the next value of a key from its present one.

#pragma once

#include "troupe/core/json.hpp"

#include <functional>
#include <optional>
#include <type_traits>

namespace troupe {

/// Returns the next value of a key; null erases the key. `now` is the present
/// value, unset if the key is absent. Called again, with the newer value, if
/// another change came between. It should have no other effect.
using state_update = std::function<json(std::optional<json> now)>;

namespace detail {

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
/// True if an argument of this type survives a `co_await` expression of g++ 12,
/// which destroys a temporary lambda there twice.
template <class Change>
inline constexpr bool may_be_awaited_with
  = std::disjunction_v<std::is_lvalue_reference<Change>,
                       std::is_same<Change, state_update>,
                       std::is_trivially_destructible<Change>>;
#else
template <class Change>
inline constexpr bool may_be_awaited_with = true;
#endif

} // namespace detail

} // namespace troupe
