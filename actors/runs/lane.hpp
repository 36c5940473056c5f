// One lane of a run: an actor that runs one coroutine, the body of an agent. It
// waits on the coroutine's behalf for models, tools, timers and commits.
//
// The root lane is the invocation itself (see invocation_actor). A parallel
// agent runs each sub-agent on a lane of its own.

#pragma once

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/running/shared.hpp"
#include "troupe/agents/agent.hpp"
#include "troupe/contexts/lanes/host.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class fan_out;
struct fan_out_request;
class invocation_actor;
class nested_session;
class node_lanes;
struct node_visit;
class temp_space;
class tool_calls;
class wait_answer;

/// Description of a lane that is about to start.
struct lane_start {
  agent which;
  /// The context of the waiting coroutine on the parent lane; null at the root.
  /// The coroutine waits until this lane has ended, which keeps it alive.
  const invocation_context* caller = nullptr;
  std::string branch = {};
  /// `temp:` keys of the lane; null: it shares its parent's.
  std::shared_ptr<temp_space> temp = {};
  /// Nested session to work on; null: the parent's, or the run's session.
  std::shared_ptr<nested_session> nested = {};
  /// The checkpoint to continue from; null: from the start.
  checkpoint_ptr from = {};
  /// The visit of a workflow's node that the lane runs; null: it runs `which`.
  std::shared_ptr<const node_visit> visit = {};
  /// Place above the agent of the lane (contexts/lanes/event_place.hpp), and
  /// the number of the agent there.
  std::string above = {};
  std::uint64_t number = 1;
  /// Id of the innermost visit (`visit_id`); empty outside of workflows.
  std::string visit_key = {};
};

class lane_actor : public inbox_actor,
                   public lane_host,
                   public commit_listener {
public:
  /// A lane below `parent`, which ends after it.
  lane_actor(caf::actor_config& config,
             std::shared_ptr<run_shared> run,
             invocation_actor& root_lane,
             lane_actor& parent,
             std::size_t index,
             lane_start start);

  ~lane_actor() override;

  caf::behavior make_behavior() override;

  // -- lane_host --------------------------------------------------------------

  void post(std::coroutine_handle<> suspended) final;

  const run_facts& facts() const noexcept final { return run_->facts; }

  step_view view() const final;

  std::uint64_t first_read(const agent& which,
                           const event_slice& live) const final;
  std::uint64_t message_number() const noexcept final;

  std::string_view visit_key() const noexcept final { return start_.visit_key; }

  const recovered_run* recovered() const noexcept final;
  bool tells_places() const noexcept final;
  void note_replayed(const invocation_context& context,
                     const troupe::event& stored) final;
  json take_caught() final;

  // -- for recovered runs -----------------------------------------------------

  /// Returns the number of the last event that the body of `context` has
  /// repeated, or that an agent below it had left; 0 if there is none.
  std::uint64_t replayed_to(const invocation_context& context) const;

  /// Notes that the body has come to the event with this number.
  void set_replayed(const invocation_context& context, std::uint64_t number);

  /// Notes that the agent at `place` has failed. The body above may catch that.
  void note_failure(const std::string& place, const error& why);

  /// Removes the notes about a context that ends.
  void forget(const invocation_context& context) noexcept;

  std::stop_token stop() const final { return stop_.get_token(); }

  void emit(emit_request& request) override;
  void ask(model_call& request) final;
  void call(tool_turn& request) final;
  void sleep(sleep_request& request) final;
  void refresh(refresh_request& request) final;
  void read(history_request& request) final;
  std::uint64_t number_call(invocation_context& caller,
                            const agent& which) const final;
  task<agent_end> run(invocation_context& caller,
                      const agent& which,
                      std::uint64_t number,
                      checkpoint_ptr from) final;

  /// Starts the lanes of a fan-out. The request's coroutine resumes when all
  /// have ended.
  void start_lanes(fan_out_request& request);

  // -- commit_listener --------------------------------------------------------

  void hear_commit(std::uint64_t key,
                   const event_ptr& committed) noexcept final;

  // -- for fan-outs, workflows and tool calls ---------------------------------

  /// The lanes of the workflow that the lane runs. Requires `open_nodes`.
  node_lanes& nodes() noexcept { return *nodes_; }

  /// Begins and ends a workflow on this lane, which runs one at a time.
  void open_nodes();
  void close_nodes() noexcept;

  /// As this lane was started.
  const lane_start& start() const noexcept { return start_; }

  /// The last event of the lane with visible text; null if there is none.
  const event_ptr& last_said() const noexcept { return last_said_; }

  /// The output of the last workflow that ended on this lane; unset if there is
  /// none.
  const std::optional<json>& last_output() const noexcept {
    return last_output_;
  }

  void set_output(std::optional<json> output) {
    last_output_ = std::move(output);
  }

  /// Starts a lane below this one.
  ref<lane_actor> spawn_below(std::size_t index, lane_start start);

  /// Calls `due` on this lane after `delay`, unless the current fan-out or
  /// workflow has ended.
  void call_after(std::chrono::nanoseconds delay, std::function<void()> due);

  // -- for the invocation -----------------------------------------------------

  const std::shared_ptr<temp_space>& temp() const noexcept {
    return start_.temp;
  }

  /// The nested session that the lane works on; null: the run's session.
  const std::shared_ptr<nested_session>& nested() const noexcept {
    return start_.nested;
  }

  /// The tool calls that the lane waits for. Requires that there are some.
  tool_calls& calls() noexcept { return *calls_; }

  /// Resumes the coroutine if all its tool calls are over.
  void go_on_with_calls();

  /// Notes that an event of this lane was committed.
  void hear(const event_ptr& committed);

  const std::shared_ptr<run_shared>& shared_run() const noexcept {
    return run_;
  }

  /// The root agent of this lane, and the tree of its agents. The tree is null
  /// if no agent in it may hand over.
  const agent& root_agent() const noexcept;
  const agent_tree* tree() const noexcept;

  /// The reason to end, once the lane is cancelled.
  const std::optional<error>& cancelled() const noexcept { return cancelled_; }

protected:
  /// The root lane; `stop` is the run's.
  lane_actor(caf::actor_config& config,
             std::shared_ptr<run_shared> run,
             agent which,
             std::stop_source stop,
             std::shared_ptr<temp_space> temp,
             invocation_actor& self);

  void deliver(letter_ptr received) override;
  error closed_reason() const override;

  /// Runs the agent's body, and calls `finish` when it has ended.
  void start_body();
  virtual void finish(result<agent_end> outcome);

  /// The coroutine of the lane.
  virtual task<agent_end> body();

  /// Resumes a coroutine on the calling thread.
  void go_on(std::coroutine_handle<> suspended);

  /// Ends the current wait with `reason`; later waits end at once.
  void cancel_lane(const error& reason);

  const std::shared_ptr<run_shared> run_;

private:
  // Starts a wait that a cancellation ends early. Returns the number of the
  // wait, or nothing if the lane is already cancelled. `interrupt` writes the
  // error into the request.
  std::optional<std::uint64_t>
  begin_wait(std::coroutine_handle<> waiting,
             std::function<void(const error&)> interrupt);
  // Starts such a wait for `request.outcome`. Returns the object that takes the
  // answer, or null if the lane is already cancelled. A lost answer ends the
  // wait, too.
  template <class Request>
  std::shared_ptr<wait_answer> wait_for(Request& request);
  void end_wait();
  void count_tokens(const model_response& answer);
  std::stop_token give_up_after(std::chrono::milliseconds time,
                                model_call& request,
                                const std::string& who);
  void receive(begin& told);
  void receive(actors::resume& waiting);
  void receive(more_lanes& told);
  void receive(struct cancel& wished);
  void receive(answer& arrived);
  void receive(lane_ended& ended);
  void receive(lane_timer& arrived);
  void receive(node_committed& told);

  void go_on_with_lanes();
  void go_on_with_nodes();
  // Starts the lanes that may start now. Returns the coroutine that waits for
  // all lanes if the last one has ended, otherwise null.
  std::coroutine_handle<> advance_lanes();

  const lane_start start_;
  invocation_actor* const root_lane_;  // Outlives its lanes.
  lane_actor* const parent_ = nullptr; // Waits until this lane has ended.
  const std::size_t index_ = 0;

  std::stop_source stop_;
  std::uint64_t wait_ = 0;
  bool waits_ = false;
  std::coroutine_handle<> waiting_;
  std::function<void(const error&)> interrupt_;
  std::optional<error> cancelled_;
  // Timer of the current model call, if its time is limited.
  std::shared_ptr<void> model_timer_;

  // The tool calls or the fan-out that the coroutine waits for.
  std::unique_ptr<tool_calls> calls_;
  fan_out_request* fan_out_request_ = nullptr;
  std::unique_ptr<fan_out> lanes_;
  std::unique_ptr<node_lanes> nodes_;
  std::uint64_t fan_out_count_ = 0; // Fan-outs and workflows.
  // The last event of the lane with visible text.
  event_ptr last_said_;
  std::optional<json> last_output_;
  std::map<const invocation_context*, std::uint64_t> replayed_;
  json caught_; // As in `caught_fact`, or null.
};

/// Continues in a later job of the lane, after the letters in its inbox.
class later_await {
public:
  explicit later_await(lane_actor& lane) : lane_(lane) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { lane_.post(waiting); }

  void await_resume() const noexcept {}

private:
  lane_actor& lane_;
};

} // namespace troupe::actors
