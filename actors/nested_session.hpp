// What an agent that is the tool of another one works on: the state of its
// caller as of the call, and a history of its own.
//
// Nothing of it is stored. What its events do to state goes along with the
// result of the call, as the operations that they are, so that those of
// concurrent tools are not lost; its `temp:` keys stay inside.

#pragma once

#include "troupe/agents/agent_tree.hpp"
#include "troupe/contexts/lane_host.hpp"
#include "troupe/core/scope_state.hpp"

#include <array>
#include <memory>
#include <mutex>

namespace troupe::actors {

class nested_session {
public:
  /// Starts with what the user, that is, the calling agent, says.
  nested_session(agent root,
                 const state_snapshot& seen,
                 event message,
                 const run_facts& facts);

  /// What its lanes see, but for `temp:`. Thread-safe.
  step_view read() const;

  /// Judges and keeps an event; of the invocation's thread alone. Fails as an
  /// append does.
  result<event_ptr> append(event said);

  /// What its events did to the wider state, in their order, and to artifacts;
  /// and the last of them that says something, or null. Once its lanes have
  /// ended.
  event_actions take_changes() { return std::move(changes_); }

  const event_ptr& last_said() const noexcept { return last_said_; }

  const agent& root() const noexcept { return root_; }

  /// Null if none of its agents may hand over.
  const agent_tree* tree() const noexcept { return tree_.get(); }

private:
  const agent root_;
  const std::unique_ptr<const agent_tree> tree_;
  const run_facts& facts_;            // The run's, which outlives it.
  std::array<scope_state, 3> scopes_; // By `scope`.
  event_actions changes_;
  event_ptr last_said_;

  mutable std::mutex mutex_;
  event_log events_;
  state_snapshot published_;
};

} // namespace troupe::actors
