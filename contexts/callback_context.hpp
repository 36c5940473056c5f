// What callbacks see: the state, which they may also write, and what else their
// event does.

#pragma once

#include "troupe/contexts/readonly_context.hpp"

namespace troupe {

/// What is written travels in the event that the callback, tool or agent body
/// belongs to, and takes effect when that event is committed.
class callback_context : public readonly_context {
public:
  using readonly_context::artifacts;
  using readonly_context::readonly_context;
  using readonly_context::state;

  /// Not thread-safe, like the context itself.
  troupe::state& state() noexcept { return state_; }

  /// What is saved there is named by the same event.
  troupe::artifacts artifacts() noexcept { return {*facts_, actions_}; }

  /// Escalation, transfer and the like for the same event. State goes through
  /// `state()`.
  event_actions& actions() noexcept { return actions_; }

private:
  event_actions actions_;
};

} // namespace troupe
