// The context of callbacks: state that they may write, and the other effects of
// their event.

#pragma once

#include "troupe/contexts/readonly_context.hpp"

namespace troupe {

/// Changes become part of the event of the callback, tool or agent body. They
/// take effect when that event is committed.
class callback_context : public readonly_context {
public:
  using readonly_context::artifacts;
  using readonly_context::readonly_context;
  using readonly_context::state;

  /// State of all scopes. Writes become part of the event. Not thread-safe,
  /// like the context itself.
  troupe::state& state() noexcept { return state_; }

  /// The artifacts of the session and its user. Saved and removed versions take
  /// effect at once; the event names the saved ones.
  troupe::artifacts artifacts() noexcept { return {*facts_, actions_, state_}; }

  /// Escalation, transfer and other effects of the same event. Use `state()`
  /// for state.
  event_actions& actions() noexcept { return actions_; }

private:
  event_actions actions_;
};

} // namespace troupe
