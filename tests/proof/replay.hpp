// What many threads have appended, once more by one: the model gets the events
// as they were sent, in an order that keeps those of all scopes, and has to
// come to what was stored.

#pragma once

#include "session_model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::testing {

struct placed_event {
  session_key key;
  event sent;
  append_options how = {};
  event_ptr stored;
  /// The revision that it made in each scope, from 1; 0 where it touches none.
  std::uint64_t session_revision = 0;
  std::uint64_t user_revision = 0;
  std::uint64_t app_revision = 0;
};

/// Appends all of them to `model`, which holds their sessions. The first
/// difference in words, or nothing.
std::string replay(session_model& model, std::vector<placed_event> events);

} // namespace troupe::testing
