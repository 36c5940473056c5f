// The session of an agent that runs as a tool: a copy of the caller's state at
// the time of the call, and a history of its own. Nothing of it is stored.
//
// Its state operations are added, unevaluated, to the result of the call, so
// operations of concurrent tools are not lost. Its `temp:` keys start as a copy
// of the caller's, and its changes of them stay inside.

#pragma once

#include "troupe/agents/turns/tree.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <array>
#include <memory>
#include <mutex>
#include <vector>

namespace troupe::actors {

class nested_session {
public:
  /// The history starts with `message`, written by the calling agent in the
  /// role of the user.
  nested_session(agent root,
                 const state_snapshot& seen,
                 event message,
                 const run_facts& facts);

  /// The view of its lanes, without `temp:`, which each lane adds. Thread-safe.
  step_view read() const;

  /// Judges an event and adds it to the history. Fails like an append. `basis`
  /// is that of its plain writes, or null. Called on the invocation's thread
  /// only.
  result<event_ptr> append(event said, basis_check* basis);

  /// The collected operations on wider state and on artifacts, in order. Call
  /// this after the lanes of the session have ended.
  event_actions take_changes() { return std::move(changes_); }

  /// The bases of these operations, of keys whose first operation is plain.
  /// Call this as `take_changes`.
  std::vector<write_basis> take_bases() { return std::move(bases_); }

  /// The last event with content, or null.
  const event_ptr& last_said() const noexcept { return last_said_; }

  const agent& root() const noexcept { return root_; }

  /// Null if no agent in it may hand over.
  const agent_tree* tree() const noexcept { return tree_.get(); }

private:
  result<void> judge(const delta& changes,
                     basis_check* basis,
                     std::vector<resolution>& resolved);

  const agent root_;
  const std::unique_ptr<const agent_tree> tree_;
  const run_facts& facts_;            // Owned by the run, which outlives this.
  std::array<scope_state, 3> scopes_; // By `scope`.
  event_actions changes_;
  std::vector<write_basis> bases_;
  event_ptr last_said_;

  mutable std::mutex mutex_;
  event_log events_;
  state_snapshot published_;
};

} // namespace troupe::actors
