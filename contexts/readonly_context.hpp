// The context of instruction providers: agent, session, and read-only state.

#pragma once

#include "troupe/contexts/artifacts.hpp"
#include "troupe/core/content.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"
#include "troupe/stores/memory_entry.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

struct run_facts;

/// The facts of a run and its state. Lives as long as the call that received
/// it. Not thread-safe.
class readonly_context {
public:
  /// `facts` must outlive the context.
  readonly_context(const run_facts& facts,
                   std::string agent_name,
                   troupe::state state)
    : facts_(&facts),
      agent_name_(std::move(agent_name)),
      state_(std::move(state)) {}

  readonly_context(const readonly_context&) = delete;
  readonly_context& operator=(const readonly_context&) = delete;

  /// Id of the run. Its events carry the same id.
  const std::string& invocation_id() const noexcept;

  /// Name of the agent that runs, or that owns the callback or tool.
  const std::string& agent_name() const noexcept { return agent_name_; }

  /// Names of the app, the user and the session.
  const session_key& session() const noexcept;

  /// The message that started the run.
  const content& user_content() const noexcept;

  /// State of all scopes, with the changes that this code has recorded.
  const readonly_state& state() const noexcept { return state_; }

  /// The artifacts of the session and its user, for reading.
  readonly_artifacts artifacts() const noexcept { return {*facts_, state_}; }

  /// Searches the memories of the user, of all sessions, as
  /// `memory_service::search` does. `get` and `value` of the answer block;
  /// agents, callbacks and coroutines use `co_await`. Fails with
  /// `errc::invalid_argument` if the runtime has no memory service.
  pending<std::vector<memory_entry>>
  search_memory(std::string query, std::size_t limit = 10) const;

protected:
  // Belongs to the actor of the run, which outlives this.
  const run_facts* facts_; ///< Facts of the run.
  std::string agent_name_; ///< The value of `agent_name()`.
  troupe::state state_;    ///< The view, and the changes recorded on it.
};

} // namespace troupe
