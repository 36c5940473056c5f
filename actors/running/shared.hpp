// State that all lanes of one run share.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/running/session_budget.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/agents/turns/tree.hpp"
#include "troupe/agents/turns/turnstile.hpp"
#include "troupe/contexts/lanes/recovered_run.hpp"
#include "troupe/contexts/run_options.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class tool_job;

struct run_shared {
  run_facts facts;
  run_options options;
  std::shared_ptr<setup> shared;
  std::shared_ptr<detail::run_control> control;
  /// The session's actor; set together with `view`.
  ref<session_actor> session;
  /// The app's actor, which takes look-ups and the start and end of the run. It
  /// outlives its users and sessions.
  ref<app_actor> app;
  /// The session of this run, and those of the runs that wait for it.
  std::vector<session_key> sessions;
  std::atomic<std::size_t> model_calls{0};
  /// Tokens of the model calls that have ended.
  std::atomic<std::uint64_t> tokens{0};
  /// Tokens of the session; counted only if the run has a budget for them.
  session_budget budget;
  /// The agents have ended, and the run sums up its session. The holder of the
  /// run gets no events any more.
  bool is_compacting = false;
  std::shared_ptr<retry_budget> retries;
  /// Limits the tools of this run that run at the same time.
  std::optional<turnstile> tool_slots;
  /// The run's agents; null if none of them may hand over to another.
  std::shared_ptr<const agent_tree> tree;
  /// The root agent. Its global instruction applies to all agents.
  std::optional<agent> root_agent;

  /// Set when the run starts, before its agents start.
  std::shared_ptr<session_view> view;
  /// The events where the run starts to read; set with its message.
  history_start history;
  /// The pause that the run continues from; set with its message.
  std::optional<pause_claim> claim;
  /// Invocation in which the work of the run began: its own, unless it
  /// continues from a pause. Set with its message.
  std::string first_invocation;
  /// The events of the run before it was recovered; null for a run that was
  /// not. Set before its agents start.
  std::shared_ptr<const recovered_run> recovered;
  /// Number of the newest rewind since its message; 0 if there is none. A
  /// recovered run may have some.
  std::uint64_t rewound = 0;
  /// Number of recoveries of the run so far.
  std::uint64_t recoveries = 0;
  /// The recovery has found other agents or keys than those of the run. The run
  /// then stays open, for a program that has the right ones.
  std::atomic<bool> is_refused{false};
  /// The agents have started. Used by the root lane only.
  bool went_on = false;

  /// Notes a tool that ignored its stop token and was abandoned. While it runs,
  /// it keeps itself and this object alive.
  void add_abandoned(const std::shared_ptr<const tool_job>& left) {
    const std::lock_guard guard(mutex);
    abandoned.push_back(left);
  }

  mutable std::mutex mutex;
  std::vector<std::weak_ptr<const tool_job>> abandoned;
};

/// The run whose code the calling thread runs, or null.
const run_shared* current_run() noexcept;

/// Makes a run the current one of this thread, for a block.
class run_scope {
public:
  explicit run_scope(const run_shared* entered) noexcept;
  ~run_scope();
  run_scope(const run_scope&) = delete;
  run_scope& operator=(const run_scope&) = delete;

private:
  const run_shared* before_;
};

} // namespace troupe::actors
