// Applies the appends of many threads to the model, one by one. The events are
// applied as they were sent, in an order that agrees with the order of every
// scope. The results must equal the stored events.

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
  /// Revisions that the event made in each scope, from 1; 0 for a scope that it
  /// does not touch.
  std::uint64_t session_revision = 0;
  std::uint64_t user_revision = 0;
  std::uint64_t app_revision = 0;
};

/// Appends all events to `model`, which must already hold their sessions.
/// Returns the first difference as text, or nothing.
std::string replay(session_model& model, std::vector<placed_event> events);

} // namespace troupe::testing
