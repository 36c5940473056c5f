// The outcome of a call as text that Boost.Test shows when a check fails.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <optional>
#include <string>
#include <utility>

namespace troupe::testing {

/// `"ok"`, or the name of the error code.
template <class T>
std::string code_of(const result<T>& outcome) {
  return outcome ? "ok" : std::string(to_string(outcome.error().code()));
}

/// The message of the error, or nothing on success.
template <class T>
std::string reason_of(const result<T>& outcome) {
  return outcome ? std::string() : outcome.error().message();
}

/// `"ok"`, or the name of the error code that `act` threw.
template <class Action>
std::string code_thrown_by(Action&& act) {
  try {
    std::forward<Action>(act)();
  } catch (const error& failure) {
    return std::string(to_string(failure.code()));
  }
  return "ok";
}

/// The value as compact JSON, or `absent`.
template <class Value>
std::string text_of(const Value* found) {
  return found != nullptr ? to_text(found->data()) : "absent";
}

template <class Value>
std::string text_of(const std::optional<Value>& found) {
  return text_of(found ? &*found : nullptr);
}

} // namespace troupe::testing
