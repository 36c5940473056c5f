// One lane of a run: it runs one coroutine, an agent's body, and waits on its
// behalf.
//
// The root lane is the invocation itself (see invocation_actor). A parallel
// agent runs each sub-agent on a lane of its own.

#pragma once

#include "troupe/actors/inbox_actor.hpp"
#include "troupe/actors/run_shared.hpp"
#include "troupe/agents/agent.hpp"
#include "troupe/contexts/lane_host.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class fan_out;
struct fan_out_request;
class invocation_actor;
class nested_session;
class temp_space;
class tool_calls;

/// What a lane runs, and where.
struct lane_start {
  agent which;
  /// In the coroutine of the lane above, which waits; null at the root.
  const invocation_context* caller = nullptr;
  std::string branch = {};
  /// Null: those of the lane above.
  std::shared_ptr<temp_space> temp = {};
  /// What it works on instead of the session; null: what the lane above does.
  std::shared_ptr<nested_session> nested = {};
  /// Where it goes on; null: from the start.
  checkpoint_ptr from = {};
};

class lane_actor : public inbox_actor, public lane_host {
public:
  /// A lane below `parent`, which ends after it.
  lane_actor(caf::actor_config& config,
             std::shared_ptr<run_shared> run,
             invocation_actor& root,
             lane_actor& parent,
             std::size_t index,
             lane_start start);

  ~lane_actor() override;

  caf::behavior make_behavior() override;

  // -- lane_host -------------------------------------------------------------

  void post(std::coroutine_handle<> suspended) final;

  const run_facts& facts() const noexcept final { return run_->facts; }

  step_view view() const final;

  std::uint64_t first_read(const agent& which) const final;

  std::stop_token stop() const final { return stop_.get_token(); }

  void emit(emit_request& request) override;
  void ask(model_call& request) final;
  void call(tool_turn& request) final;
  void sleep(sleep_request& request) final;
  void refresh(refresh_request& request) final;
  void read(history_request& request) final;
  task<agent_end> run(invocation_context& caller,
                      const agent& which,
                      checkpoint_ptr from) final;

  /// Starts the lanes of a fan-out; answers like the members above.
  void start_lanes(fan_out_request& request);

  // -- for what runs below ---------------------------------------------------

  /// Starts a lane below this one.
  caf::strong_actor_ptr spawn_below(std::size_t index, lane_start start);

  /// Calls `due` on this lane after some time, if the fan-out is still there.
  void call_after(std::chrono::nanoseconds delay, std::function<void()> due);

  // -- for the invocation ----------------------------------------------------

  const std::shared_ptr<temp_space>& temp() const noexcept {
    return start_.temp;
  }

  /// What the lane works on instead of the run's session; null: that.
  const std::shared_ptr<nested_session>& nested() const noexcept {
    return start_.nested;
  }

  /// The calls that the lane waits for; there are some.
  tool_calls& calls() noexcept { return *calls_; }

  /// Goes on once its calls are over.
  void go_on_with_calls();

  /// An event of this lane was committed, while the lane waits.
  void hear(const event_ptr& committed);

  const std::shared_ptr<run_shared>& shared_run() const noexcept {
    return run_;
  }

  /// The agents that the lane's belong to: the root, and their tree if one of
  /// them may hand over, or null.
  const agent& root_agent() const noexcept;
  const agent_tree* tree() const noexcept;

  /// Why the lane is to end, if it is.
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

  /// Runs the agent's body; `finish` is called when it has ended.
  void start_body();
  virtual void finish(result<agent_end> outcome);

  /// What the lane does, as a coroutine on it.
  virtual task<agent_end> body();

  /// Goes on with a coroutine, here and now.
  void go_on(std::coroutine_handle<> suspended);

  /// Wakes what waits and keeps what follows from waiting.
  void cancel_lane(const error& reason);

  const std::shared_ptr<run_shared> run_;

private:
  // Waits for an answer that a cancellation need not wait for. Gives the number
  // of the wait, or nothing when the lane is cancelled already; `interrupt`
  // puts the error into the request.
  std::optional<std::uint64_t>
  begin_wait(std::coroutine_handle<> waiting,
             std::function<void(const error&)> interrupt);
  void end_wait();
  std::stop_token give_up_after(std::chrono::milliseconds time,
                                std::uint64_t wait,
                                model_call& request,
                                const std::string& who);
  void receive(answer& arrived);
  void receive(lane_ended& ended);
  void receive(lane_timer& arrived);

  void go_on_with_lanes();

  const lane_start start_;
  invocation_actor* const root_;       // Outlives its lanes.
  lane_actor* const parent_ = nullptr; // Waits for this lane.
  const std::size_t index_ = 0;

  std::stop_source stop_;
  std::uint64_t wait_ = 0;
  bool waits_ = false;
  std::coroutine_handle<> waiting_;
  std::function<void(const error&)> interrupt_;
  std::optional<error> cancelled_;
  // Of the model call that the coroutine waits for, if its time is limited.
  std::shared_ptr<void> model_timer_;

  // The turn or the fan-out that the coroutine waits for.
  std::unique_ptr<tool_calls> calls_;
  fan_out_request* fan_out_request_ = nullptr;
  std::unique_ptr<fan_out> lanes_;
  std::uint64_t fan_out_count_ = 0;
  // The last event of the lane that said something.
  event_ptr last_said_;
};

} // namespace troupe::actors
