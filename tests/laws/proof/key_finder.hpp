// Looks up keys in an answer: a state, the keys of one owner, or the results of
// an event.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/state.hpp"

#include "append_order.hpp"
#include "linearizability.hpp"

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace troupe::testing {

/// Returns the value of a full key, or null. Must not outlive the answer.
using key_finder = std::function<value(const std::string& key)>;

inline key_finder find_in(const readonly_state& state) {
  return [&state](const std::string& key) {
    return state.find(key).value_or(value());
  };
}

/// Finds keys in the state of one owner, which has no prefixes.
inline key_finder find_in(const json& keys) {
  return [&keys](const std::string& key) {
    return value(keys.value(std::string(split_key(key).name), json()));
  };
}

inline key_finder find_in(const event& stored) {
  return [&stored](const std::string& key) {
    const auto [where, name] = split_key(key);
    const auto* done = stored.actions.state_delta.find_last(where, name);
    return done != nullptr ? done->operand : value();
  };
}

inline std::vector<token> tokens_of(const value& list) {
  std::vector<token> all;
  if (!list->is_array())
    return all;
  all.reserve(list->size());
  for (const auto& each : list.data())
    all.push_back(each.get<token>());
  return all;
}

inline list_spec::state digest_of(std::span<const token> list) {
  list_spec::state made;
  for (const auto each : list)
    list_spec::append(made, each);
  return made;
}

inline register_spec::state number_of(const value& held) {
  return held.is_null() ? register_spec::state() : held->get<std::int64_t>();
}

} // namespace troupe::testing
