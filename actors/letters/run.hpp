// Letters of runs: between invocations, lanes and the owners.

#pragma once

#include "troupe/actors/letters/state.hpp"
#include "troupe/contexts/history_extent.hpp"
#include "troupe/contexts/run_options.hpp"

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace troupe::detail {
class run_control;
}

namespace troupe::actors {

struct start_run : letter_of<letter_kind::start_run, letter>, look_up {
  void fail(const error& why) override;

  /// The session that the caller meant; a later session of the same key refuses
  /// the run with `not_found`. Null: any session of the key.
  const session_actor* session = nullptr;
  ref<inbox_actor> invocation;
  /// Actor id of the invocation. A later run may get its address, but not its
  /// id.
  caf::actor_id id = 0;
  std::shared_ptr<const detail::run_control> control;
  run_policy policy = run_policy::queue;
  /// Extent of the history that the run's agents read, and its first events.
  history_extent reads = history_extent::all();
  history_start history;
  /// The session's `cuts` when `history` was found; unset before.
  std::optional<std::uint64_t> searched;
  /// The user's message; appended when the run starts.
  std::unique_ptr<append> message;
  std::shared_ptr<session_view> view;
  /// Set when the run starts: the session that takes its events.
  ref<session_actor> granted_by;
};

/// Tells an invocation that its run does not start.
struct refused_run : letter_of<letter_kind::refused_run> {
  explicit refused_run(error reason) : why(std::move(reason)) {}

  error why;
};

/// Ends a run in its session. Dropped if the session has ended.
struct end_run : letter_of<letter_kind::end_run>, look_up {
  /// As in `start_run`.
  caf::actor_id id = 0;
};

/// Tells an invocation to send its message again, which was kept out.
struct try_again : letter_of<letter_kind::try_again> {
  /// Of a recovery: the holder from which the run can be taken now. An error
  /// ends the run.
  std::optional<result<former_holder>> holder;
};

/// Starts the body of an agent on its lane.
struct begin : letter_of<letter_kind::begin> {};

struct cancel : letter_of<letter_kind::cancel> {
  explicit cancel(error why) : reason(std::move(why)) {}

  error reason;
};

/// Resumes a coroutine on its lane, which outlives the coroutine.
struct resume : letter_of<letter_kind::resume> {
  explicit resume(std::coroutine_handle<> waiting) : suspended(waiting) {}

  std::coroutine_handle<> suspended;
};

/// Passes an event of a lane to the invocation, which outlives the lane.
struct emit : letter_of<letter_kind::emit> {
  lane_actor* from = nullptr;
  emit_request* request = nullptr;
};

/// Ends one wait of a lane. `wait` is the number of the wait: the lane ignores
/// answers to earlier ones.
struct answer : letter_of<letter_kind::answer> {
  std::uint64_t wait = 0;
  /// Puts the answer into the lane's request; called on the lane.
  std::function<void()> deliver;
};

struct lane_ended : letter_of<letter_kind::lane_ended> {
  std::size_t index = 0;
  result<agent_end> outcome = agent_end();
  /// The last event of the lane with visible text; null if there is none.
  event_ptr last_said;
  /// The output of the lane's agent, if that is a workflow.
  std::optional<json> output;
};

/// Tells a lane to start the next lanes of a large fan-out.
struct more_lanes : letter_of<letter_kind::more_lanes> {};

/// Tells the lane of a workflow that an event of it was committed.
struct node_committed : letter_of<letter_kind::node_committed> {
  /// The visit whose event it is.
  std::uint64_t visit = 0;
  event_ptr event;
};

struct lane_timer : letter_of<letter_kind::lane_timer> {
  /// Number of the lane's fan-out or workflow that set the timer.
  std::uint64_t fan_out = 0;
  std::function<void()> due;
};

} // namespace troupe::actors
