// The services that running code needs from its actor, as one small interface.
//
// A lane runs one coroutine at a time, and that coroutine waits for one request
// at a time. Each request is stored in the frame of the coroutine that waits
// for it. The runtime implements the interface. The requests have constructors
// because g++ 12 destroys temporary aggregates in a co_await expression twice.

#pragma once

#include "troupe/contexts/lanes/basis_check.hpp"
#include "troupe/contexts/lanes/checkpoint.hpp"
#include "troupe/contexts/lost_update.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/trace_context.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class agent;
struct artifact_service;
class invocation_context;
struct memory_access;
class recovered_run;

/// Facts that are the same for all agents and lanes of a run.
struct run_facts {
  /// Id of the run; all events of the run carry it.
  std::string invocation_id;
  /// Names of the app, the user and the session.
  session_key session;
  /// The message that started the run, as plugins have left it.
  content user_content;
  /// Source of time and ids; never null.
  std::shared_ptr<troupe::environment> environment;
  /// Limits of the runtime for values and events, in bytes.
  size_limits limits;
  /// Null if the runtime has no artifact store.
  std::shared_ptr<const artifact_service> artifacts;
  /// Null if the runtime has no memory service.
  std::shared_ptr<const memory_access> memory;
  /// As in `user_message`, also after a recovery.
  trace_context trace;
  /// True if events record the working times of their models and tools.
  bool step_times = false;
  /// As in `run_options`.
  troupe::lost_updates lost_updates = lost_updates::tell;
  /// As in `run_options`.
  std::size_t update_retries_max = 0;
};

/// The view of a step: the newest state and events.
struct step_view {
  /// Number of the newest event in the session.
  std::uint64_t revision() const noexcept { return before + events.span(); }

  /// The keys of all scopes, with the `temp:` keys of the lane.
  state_snapshot state;
  /// The newest events of the session that are in memory, oldest first, without
  /// those that were taken back.
  event_slice events;
  /// Number of the session's events before `events`.
  std::uint64_t before = 0;
  /// Number of the newest event that is gone; 0 unless the session was trimmed.
  std::uint64_t trimmed_to = 0;
};

/// Hears of events that were committed.
class commit_listener {
public:
  /// Tells that the event of an `emit_request` was committed. Calls come in the
  /// order in which the session has the events, on the thread of the run's root
  /// lane, before the request is answered; they must not block.
  virtual void hear_commit(std::uint64_t key,
                           const event_ptr& committed) noexcept = 0;

protected:
  ~commit_listener() = default;
};

/// Emits an event of the lane.
struct emit_request {
  emit_request() = default;

  /// The event to emit, with author and branch. The run fills in the ids.
  troupe::event event;
  /// True if the delta holds only `temp:` keys and is installed without
  /// an event.
  bool temp_only = false;
  /// True if the event has an id, and no event of the session has it yet.
  bool has_new_id = false;
  /// The reads that the plain writes of the event are based on; null if there
  /// are none.
  std::unique_ptr<basis_check> basis;
  /// Listener that is told of the commit, with `key`. It outlives the request.
  /// Null: none.
  commit_listener* listener = nullptr;
  std::uint64_t key = 0;
  /// The event as committed, a partial event as sent, or the error. Null on
  /// success if `temp_only` is set.
  result<event_ptr> outcome = event_ptr();
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// Asks a model once.
struct model_call {
  model_call() = default;

  /// The model to ask; never null.
  model_ptr asked;
  /// Branch of the partial events that the model streams.
  std::string branch;
  /// Their `isolationScope`; empty for none.
  std::string scope;
  /// The request. The lane fills in environment, retries and stop token.
  model_request request;
  /// The whole answer, or the error of the model or of the run's limits.
  result<model_response> outcome = model_response();
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// Runs several calls of tools at the same time.
struct tool_turn {
  tool_turn() = default;

  /// The agent that owns the tools; lives as long as the request.
  const agent* owner = nullptr;
  /// The context of the call; lives as long as the request.
  const invocation_context* caller = nullptr;
  /// The calls to run. Each receives its own outcome.
  std::vector<tool_call> calls;
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// Waits for a time.
struct sleep_request {
  sleep_request() = default;

  /// Time to wait.
  std::chrono::nanoseconds duration{};
  /// An error if the lane was cancelled before the time was over.
  result<void> outcome;
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// Refreshes the view with the newest state of all owners.
struct refresh_request {
  refresh_request() = default;

  /// An error if the lane was cancelled, the session was deleted or the store
  /// failed. The view may then be stale.
  result<void> outcome;
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// Reads events of the session by number. `last` is not above the newest.
struct history_request {
  history_request() = default;

  /// Number of the first event to read, counted from 1.
  std::uint64_t first = 1;
  /// Number of the last event to read.
  std::uint64_t last = 0;
  /// The events, oldest first, without those that were taken back, or the
  /// error. A missing event is `errc::corrupt`.
  result<event_slice> outcome = event_slice();
  /// Coroutine to resume when the request is answered.
  std::coroutine_handle<> waiting;
};

/// The services of a lane. All but `post` are called only by code that the lane
/// runs. A request lives until its coroutine resumes.
class lane_host : public executor {
public:
  /// Facts of the run. They outlive the lane's coroutine.
  virtual const run_facts& facts() const noexcept = 0;

  /// Returns the newest view. Sends no message.
  virtual step_view view() const = 0;

  /// Returns the number of the oldest event that `which` reads, if `live` are
  /// the newest events.
  virtual std::uint64_t first_read(const agent& which,
                                   const event_slice& live) const = 0;

  /// Returns the number of the run's message; 0 if it has none.
  virtual std::uint64_t message_number() const noexcept = 0;

  /// Returns the id of the workflow's visit that the lane is part of; empty
  /// outside of workflows.
  virtual std::string_view visit_key() const noexcept { return {}; }

  /// Returns what the run had committed before it was recovered; null if it was
  /// not, and for an agent that is a tool. It outlives the lane.
  virtual const recovered_run* recovered() const noexcept { return nullptr; }

  /// Returns true if events tell the places of agents: they are stored, and a
  /// recovery needs the places.
  virtual bool tells_places() const noexcept { return false; }

  /// Notes that `context` has emitted an event which may have been stored
  /// before the run was recovered.
  virtual void note_replayed(const invocation_context& /*context*/,
                             const troupe::event& /*stored*/) {}

  /// Takes the failures of agents that bodies on this lane may have caught
  /// since the lane's last event, as `caught_fact`; null if there are none.
  virtual json take_caught() { return nullptr; }

  /// Requests a stop when the run or the lane is cancelled.
  virtual std::stop_token stop() const = 0;

  // Each of the following calls answers its request once: it writes the outcome
  // into the request and resumes `waiting` in a later job of the lane, never
  // inside the call.

  /// Answers when the event is committed or refused. A cancellation does not
  /// end the wait for an event that is under way.
  virtual void emit(emit_request& request) = 0;
  /// Asks the model of the request.
  virtual void ask(model_call& request) = 0;
  /// Runs all calls of the request. Answers when each has ended or was
  /// given up.
  virtual void call(tool_turn& request) = 0;
  /// Answers when the time is over, or at once after a cancellation.
  virtual void sleep(sleep_request& request) = 0;
  /// Answers when the view shows the newest state.
  virtual void refresh(refresh_request& request) = 0;
  /// Reads from memory if all events are there, otherwise from the store.
  virtual void read(history_request& request) = 0;

  /// Counts a call of `which` by `caller`, which may be skipped. Returns its
  /// number among the calls of this agent by the caller, from 1.
  virtual std::uint64_t number_call(invocation_context& caller,
                                    const agent& which) const = 0;

  /// Runs the body of `which` below `caller` on this lane, from its start or,
  /// if `from` is not null, from a checkpoint. `number` is that of
  /// `number_call`.
  virtual task<agent_end> run(invocation_context& caller,
                              const agent& which,
                              std::uint64_t number,
                              checkpoint_ptr from)
    = 0;
};

} // namespace troupe
