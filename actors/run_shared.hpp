// What all lanes of one run share.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/agents/agent_tree.hpp"
#include "troupe/agents/resumption.hpp"
#include "troupe/agents/turnstile.hpp"
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
  /// Set with the view.
  caf::strong_actor_ptr session;
  /// Where look-ups and turns on the session are asked for; it outlives all
  /// below it.
  caf::strong_actor_ptr app;
  /// The sessions of the runs that wait for this one, and its own.
  std::vector<session_key> sessions;
  std::atomic<std::size_t> model_calls{0};
  std::shared_ptr<retry_budget> retries;
  /// Where its tools wait for each other.
  std::optional<turnstile> tool_places;
  /// The run's agents, if one of them may hand over to another.
  std::shared_ptr<const agent_tree> tree;
  /// The global instruction is its.
  std::optional<agent> root;

  /// Set when the run gets its turn, before anything of it runs.
  std::shared_ptr<session_view> view;
  /// From where on it reads; set with its message.
  history_start history;
  /// The pause that the run goes on from; set with its message.
  std::optional<pause_claim> claim;
  /// Its agents have begun. The root lane's.
  bool went_on = false;

  /// A tool that ignores its stop token was left behind; as long as it runs it
  /// keeps itself and the run.
  void add_abandoned(const std::shared_ptr<const tool_job>& left) {
    const std::lock_guard guard(mutex);
    abandoned.push_back(left);
  }

  mutable std::mutex mutex;
  std::vector<std::weak_ptr<const tool_job>> abandoned;
};

/// The run whose code this thread is running, or null.
const run_shared* current_run() noexcept;

/// Makes a run current for a block.
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
