// The message of the user that starts a run.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/json.hpp"

#include <cstddef>
#include <string>
#include <utility>

namespace troupe {

/// A content by role `user` and the changes of state that come with it. Both
/// are appended as one event before the first agent runs.
struct user_message {
  user_message(std::nullptr_t, json = {}) = delete;

  /// A message with one text part. The pointer must not be null.
  user_message(const char* text, json delta = json::object())
    : user_message(std::string(text), std::move(delta)) {}

  /// A message with one text part.
  user_message(std::string text, json delta = json::object())
    : user_message(user_text(std::move(text)), std::move(delta)) {}

  /// A message of any parts but function calls. An empty role means `user`.
  user_message(troupe::content said, json delta = json::object())
    : content(std::move(said)),
      state_delta(std::move(delta)) {}

  /// Parts of the message.
  troupe::content content;
  /// Delta in any scope: `{"user:name": "Ann", "temp:text": …}`.
  json state_delta;
};

} // namespace troupe
