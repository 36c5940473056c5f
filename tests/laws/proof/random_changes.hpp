// Random operations on a few keys, so that they conflict often.

#pragma once

#include "troupe/core/delta.hpp"

#include "../../random.hpp"

#include <array>
#include <limits>
#include <string>
#include <string_view>

namespace troupe::testing {

/// Names of the keys that `any_kind` knows, used with any prefix.
inline constexpr std::array change_names = {"n", "list", "object", "k"};

/// Most often an operation that fits the key, so that most are accepted.
inline operation_kind any_kind(random_source& random, std::string_view key) {
  using enum operation_kind;
  if (random.one_in(3))
    return static_cast<operation_kind>(random.below(9));
  if (key.ends_with("n"))
    return random.pick(std::array{add, add, min, max});
  if (key.ends_with("list"))
    return random.pick(std::array{append, add_to_set});
  if (key.ends_with("object"))
    return merge;
  return random.pick(std::array{set, erase, compare_and_set});
}

inline json any_operand(random_source& random, operation_kind kind) {
  switch (kind) {
  case operation_kind::add:
  case operation_kind::min:
  case operation_kind::max:
    if (random.one_in(4))
      return static_cast<double>(random.below(1'000)) / 8;
    if (random.one_in(40))
      return std::numeric_limits<double>::max();
    return random.integer();
  case operation_kind::add_to_set: {
    auto list = json::array();
    for (auto left = random.below(4); left > 0; --left)
      list.push_back(random.one_in(3) ? random.data(1) : json(random.below(4)));
    return list;
  }
  case operation_kind::merge: {
    auto object = json::object();
    for (auto left = random.below(4); left > 0; --left)
      object[random.pick(std::array{"x", "y", "z"})] = random.data(1);
    return object;
  }
  default:
    return random.one_in(20) ? json(random.text(60)) : random.data(2);
  }
}

} // namespace troupe::testing
