// The context of callbacks: state that they may write, and the other effects of
// their event.

#pragma once

#include "troupe/contexts/readonly_context.hpp"
#include "troupe/models/trace_context.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <vector>

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
  /// effect at once; the event names the saved ones. After the call of a tool
  /// was given up, saving and removing fail with `errc::cancelled`.
  troupe::artifacts artifacts() noexcept {
    return {*facts_, actions_, state_, is_closed_};
  }

  // -- memory ----
  //
  // Additions take effect at once, before the event of the step is committed.
  // They are safe to repeat. If the session is removed meanwhile, they are
  // taken back and fail with `errc::not_found`. Without a memory service they
  // fail with `errc::invalid_argument`, and after the call of a tool was given
  // up with `errc::cancelled`. An agent that runs as a tool adds for the
  // session of its caller.

  /// Remembers the session with all events that are stored, as
  /// `session_service::add_to_memory` does. Returns the number of its memories.
  pending<std::size_t> add_session_to_memory();

  /// Remembers these events of the session besides those that are remembered
  /// already. Returns the number of new memories.
  pending<std::size_t> add_events_to_memory(std::vector<event_ptr> events);

  /// Remembers texts for the user, which are from no session. A missing id and
  /// time are filled in. Returns the number of new memories. Fails as
  /// `memory_service::add` does.
  pending<std::size_t> add_memory(std::vector<memory_entry> entries);

  /// Escalation, transfer and other effects of the same event. Use `state()`
  /// for state.
  event_actions& actions() noexcept { return actions_; }

  // -- traces ----

  /// The span above the requests that this code makes to other systems: the one
  /// that was set, else `user_message::trace`, which may be empty. A tool that
  /// sends HTTP requests can send it as headers.
  const trace_context& trace() const noexcept;

  /// Sets that span, for this context alone. Plugins for telemetry call it: of
  /// an agent before its body, of a tool before its call. The texts are not
  /// checked.
  void set_trace(trace_context made);

protected:
  /// True if writes beside the event are refused from now on; null if that
  /// cannot happen. Belongs to the call of a tool.
  const std::atomic<bool>* is_closed_ = nullptr;

private:
  event_actions actions_;
  std::unique_ptr<const trace_context> trace_; // Null: that of the run.
};

} // namespace troupe
