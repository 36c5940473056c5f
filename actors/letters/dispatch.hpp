// Tells letters apart by their kind: the only place where a letter is cast to
// its own type.

#pragma once

#include "troupe/actors/letters/kind.hpp"

#include <cassert>
#include <memory>
#include <type_traits>
#include <utility>

namespace troupe::actors {

/// Returns true if the letter is one of `Letters`.
template <class... Letters>
bool is_one_of(const letter& sent) noexcept {
  return ((sent.kind == Letters::own_kind) || ...);
}

/// The letter as a `Letter`; null if it is of another kind.
template <class Letter>
Letter* as(letter& sent) noexcept {
  return is_one_of<Letter>(sent) ? static_cast<Letter*>(&sent) : nullptr;
}

template <class Letter>
const Letter* as(const letter& sent) noexcept {
  return is_one_of<Letter>(sent) ? static_cast<const Letter*>(&sent) : nullptr;
}

/// Converts a letter, whose kind must be known, to its own type.
template <class Letter>
std::unique_ptr<Letter> take_as(letter_ptr received) noexcept {
  return std::unique_ptr<Letter>(static_cast<Letter*>(received.release()));
}

/// Calls `handle` with the letter as its own type, if that is one of `Letters`.
/// Otherwise returns false, and the caller keeps the letter. The most frequent
/// kinds come first.
template <class... Letters, class Handle>
bool try_dispatch(letter_ptr& received, const Handle& handle) {
  const auto give = [&]<class Letter>(std::type_identity<Letter>) {
    if (received->kind != Letter::own_kind)
      return false;
    handle(take_as<Letter>(std::move(received)));
    return true;
  };
  return (give(std::type_identity<Letters>()) || ...);
}

/// The same for a receiver that gets no other letters.
template <class... Letters, class Handle>
void dispatch(letter_ptr received, const Handle& handle) {
  if (!try_dispatch<Letters...>(received, handle))
    assert(false && "a letter that its receiver does not know");
}

} // namespace troupe::actors
