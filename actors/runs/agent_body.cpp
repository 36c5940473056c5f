#include "troupe/actors/runs/agent_body.hpp"

#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/callbacks.hpp"
#include "troupe/actors/runs/lanes_body.hpp"
#include "troupe/actors/runs/llm_body.hpp"
#include "troupe/actors/runs/recovered_agent.hpp"
#include "troupe/actors/runs/workflow_body.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/llm_turn.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::actors {

namespace {

// Suspends until the lane has handled the letters sent to it, and other actors
// have run.
class yield_await {
public:
  explicit yield_await(lane_actor& lane) : lane_(lane) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { lane_.post(waiting); }

  void await_resume() const {
    if (lane_.cancelled())
      throw *lane_.cancelled();
  }

private:
  lane_actor& lane_;
};

// Refuses an agent that already runs above, and a call stack that is too deep.
void check_stack(const lane_actor& lane,
                 const invocation_context* caller,
                 const agent& which) {
  std::size_t depth = 1;
  for (const auto* above = caller; above != nullptr; above = above->caller()) {
    if (above->agent_name() == which.name())
      throw error(errc::circular_agent_call,
                  fmt::format("agent '{}' is already running above '{}'",
                              which.name(),
                              caller->agent_name()));
    ++depth;
  }
  const auto depth_max = lane.shared_run()->options.agent_depth_max;
  if (depth > depth_max)
    throw error(errc::limit_exceeded,
                fmt::format("agent '{}' would run {} agents deep, the limit is "
                            "{}",
                            which.name(),
                            depth,
                            depth_max));
}

// Refuses an agent that reads more than the run keeps in memory. A custom agent
// can run such an agent if it is not among its sub-agents.
void check_reads(const lane_actor& lane, const agent& which) {
  const auto& kept = lane.shared_run()->root_agent->reads();
  if (!lane.nested() && !kept.covers(which.reads_itself()))
    throw error(
      errc::invalid_argument,
      fmt::format("agent '{}' reads more of the session's history than agent "
                  "'{}' has stated for the run; put it among the sub-agents, "
                  "or state more there",
                  which.name(),
                  lane.shared_run()->root_agent->name()));
}

task<> run_sequence(invocation_context& context, const agent& which) {
  for (const auto& next : which.sub_agents())
    co_await context.run(next);
}

task<> run_loop(lane_actor& lane,
                invocation_context& context,
                const agent& which,
                const loop_options& options) {
  if (which.sub_agents().empty())
    co_return;
  for (std::uint64_t count = 0; count != options.max_iterations; ++count)
    for (const auto& next : which.sub_agents()) {
      co_await context.run(next);
      if (context.has_escalated())
        co_return;
      // Sub-agents may never wait. Without this, the loop would not notice a
      // cancellation.
      co_await yield_await(lane);
    }
}

// Runs the body; returns the agent to which it handed over, if any.
task<std::optional<agent>>
run_body(lane_actor& lane, invocation_context& context, const agent& which) {
  const auto& kind = which.kind();
  if (const auto* llm = std::get_if<llm_options>(&kind)) {
    auto next = co_await run_llm(lane, context, which, *llm);
    co_return next;
  }
  if (std::holds_alternative<sequential_options>(kind))
    co_await run_sequence(context, which);
  else if (const auto* lanes = std::get_if<parallel_options>(&kind))
    co_await run_parallel(lane, context, which, *lanes);
  else if (const auto* map = std::get_if<map_options>(&kind))
    co_await run_map(lane, context, which, *map);
  else if (const auto* loop = std::get_if<loop_options>(&kind))
    co_await run_loop(lane, context, which, *loop);
  else if (const auto* graph = std::get_if<compiled_workflow>(&kind))
    co_await run_workflow(lane, context, which, *graph);
  else
    co_await std::get<custom_options>(kind).run(context);
  co_return std::nullopt;
}

// Calls the callbacks around an agent. Emits their answer, or else the state
// that they have written. Returns true if one has answered.
task<bool> call_back(invocation_context& context,
                     const std::vector<plugin>& plugins,
                     agent_callback plugin::*hook,
                     const agent& which,
                     const std::vector<agent_callback>& callbacks,
                     std::string_view place,
                     agent_step step) {
  callback_context& seen = context;
  // The body and its callbacks are steps of their own.
  seen.state().reads().forget();
  auto answer
    = co_await first_answer(plugins, hook, callbacks, place, context, seen);
  context.set_step(step);
  if (!answer) {
    co_await context.emit_leftovers();
    context.set_step(agent_step::body);
    co_return false;
  }
  model_response response(std::move(*answer));
  const auto* options = std::get_if<llm_options>(&which.kind());
  auto said = make_response_event(options != nullptr ? *options : llm_options(),
                                  std::move(response),
                                  *context.lane().facts().environment);
  if (!said)
    throw said.error();
  mark_answer(*said);
  co_await context.emit(std::move(*said));
  context.set_step(agent_step::body);
  co_return true;
}

// Tells the plugins when an agent starts and when it has ended, with or without
// failure.
class announcement {
public:
  announcement(const std::vector<plugin>& plugins, const std::string& name)
    : plugins_(plugins),
      name_(name) {
    tell(true);
  }

  ~announcement() { tell(false); }

  announcement(const announcement&) = delete;
  announcement& operator=(const announcement&) = delete;

private:
  void tell(bool started) const noexcept {
    for (const auto& each : plugins_)
      if (each.on_agent)
        each.on_agent(name_, started);
  }

  const std::vector<plugin>& plugins_;
  const std::string& name_;
};

// The outcome of one agent, without the agents that it handed over to.
struct one_end : agent_end {
  one_end(agent_end end, std::optional<agent> next_ = std::nullopt)
    : agent_end(std::move(end)),
      next(std::move(next_)) {}

  /// The agent to which it handed over.
  std::optional<agent> next;
};

// The agent to which an agent had handed over before the run was recovered, if
// any.
std::optional<agent> next_after(const lane_actor& lane,
                                const agent& which,
                                const std::string& place,
                                const recovered_run::part& left) {
  const auto name = std::holds_alternative<llm_options>(which.kind())
                      ? successor_in(left)
                      : std::string();
  if (name.empty())
    return std::nullopt;
  const auto* found
    = lane.tree() != nullptr ? lane.tree()->find(name) : nullptr;
  if (found == nullptr) {
    lane.shared_run()->is_refused = true;
    throw error(errc::conflict,
                fmt::format("cannot recover the run: at {} it was handed over "
                            "to agent '{}', which the program does not have; "
                            "recover it with the agents that it began with, or "
                            "start a new run",
                            place,
                            name));
  }
  return *found;
}

// Removes the lane's notes about a context at the end of that.
class context_notes {
public:
  context_notes(lane_actor& lane, const invocation_context& context)
    : lane_(lane),
      context_(context) {}

  ~context_notes() { lane_.forget(context_); }

  context_notes(const context_notes&) = delete;
  context_notes& operator=(const context_notes&) = delete;

private:
  lane_actor& lane_;
  const invocation_context& context_;
};

// The end of an agent that had ended before the run was recovered.
one_end end_of(const lane_actor& lane,
               const agent& which,
               const std::string& place,
               const recovered_run::part& left) {
  return {agent_end(left.has_escalated), next_after(lane, which, place, left)};
}

// Runs the body, unless it had ended before the run was recovered (`left`).
// Returns the agent to which it handed over, if any.
task<std::optional<agent>> run_rest(lane_actor& lane,
                                    invocation_context& context,
                                    const agent& which,
                                    const recovered_run::part* left) {
  if (left != nullptr && has_escalated_itself(*left))
    context.mark_escalated();
  if (left == nullptr || !has_ended_body(which, *left)) {
    auto next = co_await run_body(lane, context, which);
    co_return next;
  }
  if (left->has_escalated)
    context.mark_escalated();
  co_return next_after(lane, which, context.place(), *left);
}

void drop_leftovers(invocation_context& context) {
  static_cast<void>(context.state().take());
  context.actions() = event_actions();
}

// Runs the agent with the callbacks around it.
task<one_end> run_around(lane_actor& lane,
                         invocation_context& context,
                         const agent& which,
                         const recovered_run::part* left,
                         const checkpoint_ptr& from) {
  const auto& plugins = lane.shared_run()->shared->plugins;
  if (from) {
    context.resume(from);
  } else if (left == nullptr) {
    const bool is_answered = co_await call_back(context,
                                                plugins,
                                                &plugin::before_agent,
                                                which,
                                                which.before_agent(),
                                                "before_agent",
                                                agent_step::before_agent);
    if (is_answered)
      co_return agent_end(context.has_escalated());
    context.state().reads().forget();
  }
  std::optional<agent> next;
  checkpoint_ptr where;
  try {
    next = co_await run_rest(lane, context, which, left);
  } catch (const agent_paused& paused) {
    where = paused.where;
  }
  // A custom body may have caught the exception.
  if (!where)
    where = context.paused();
  if (from && from->escalated)
    context.mark_escalated();
  context.set_step(where ? agent_step::pause : agent_step::state);
  // They are stored if the agent had paused before the run was recovered.
  if (where && left != nullptr && left->has(agent_step::pause))
    drop_leftovers(context);
  co_await context.emit_leftovers();
  context.set_step(agent_step::body);
  if (where) {
    auto told = std::make_shared<checkpoint>(*where);
    told->escalated = context.has_escalated();
    co_return agent_end(context.has_escalated(), std::move(told));
  }
  co_await call_back(context,
                     plugins,
                     &plugin::after_agent,
                     which,
                     which.after_agent(),
                     "after_agent",
                     agent_step::after_agent);
  co_return one_end(agent_end(context.has_escalated()), std::move(next));
}

// The task that the events of the agent belong to. An agent of `agent_tool` has
// a session of its own, without tasks.
std::string scope_for(const lane_actor& lane,
                      const agent& which,
                      const invocation_context& context) {
  if (lane.nested())
    return {};
  if (mode_of(which) == agent_mode::task)
    return std::string(call_of_branch(context.branch()));
  return context.caller() != nullptr ? context.caller()->isolation_scope()
                                     : std::string();
}

task<one_end> run_one(lane_actor& lane,
                      const invocation_context* caller,
                      const agent& which,
                      const agent_place& place,
                      std::string branch,
                      const checkpoint_ptr& from) {
  check_stack(lane, caller, which);
  check_reads(lane, which);
  const auto* left = left_at(lane, place);
  if (left != nullptr) {
    restore_words(lane, place, branch, *left);
    if (has_ended(lane, place, *left))
      co_return end_of(lane, which, place.own, *left);
    check_left(lane, place, which, *left);
  }
  const announcement announced(lane.shared_run()->shared->plugins,
                               which.name());
  invocation_context context(
    lane, which, which.name(), std::move(branch), caller);
  context.isolate(scope_for(lane, which, context));
  context.stand_at(place.own);
  const context_notes notes(lane, context);
  if (left != nullptr)
    lane.set_replayed(context, last_before(*left));
  if (std::holds_alternative<custom_options>(which.kind())
      && lane.tells_places())
    context.number_events(
      visit_id({.run = lane.facts().invocation_id, .path = {}}, place.own),
      lane.recovered() != nullptr,
      lane.shared_run()->rewound);
  std::optional<one_end> end;
  std::optional<error> failure;
  try {
    end = co_await run_around(lane, context, which, left, from);
  } catch (...) {
    failure = current_failure(errc::callback_failed,
                              fmt::format("agent '{}'", which.name()));
  }
  if (!failure)
    co_return std::move(*end);
  if (failure->code() != errc::cancelled)
    failure = tell_failure(lane.shared_run()->shared->plugins,
                           &plugin::on_agent_error,
                           "on_agent_error",
                           context,
                           std::move(*failure));
  throw *failure;
}

// Returns true if an agent of this kind can have left the checkpoint.
bool fits(const checkpoint& from, const agent::body& kind) {
  const bool has_lanes = std::holds_alternative<parallel_options>(kind)
                         || std::holds_alternative<map_options>(kind)
                         || std::holds_alternative<compiled_workflow>(kind);
  // An LLM agent waits for one below it if that is a task.
  if (from.at)
    return !has_lanes;
  return from.lanes.empty() ? std::holds_alternative<llm_options>(kind)
                            : has_lanes;
}

// The agent of a checkpoint: `which`, or an agent that `which` may have handed
// over to.
agent resumed_agent(const lane_actor& lane,
                    const agent& which,
                    const checkpoint& from) {
  if (from.agent == which.name() && fits(from, which.kind()))
    return which;
  if (from.agent != which.name() && lane.tree() != nullptr
      && lane.tree()->can_reach(which.name(), from.agent))
    return *lane.tree()->find(from.agent);
  throw error(
    errc::conflict,
    fmt::format("the run paused in agent '{}', where the program now "
                "has '{}'{}",
                from.agent,
                which.name(),
                from.agent == which.name() ? ", of another kind" : ""));
}

// The agent had failed, and the body above had caught its failure.
[[noreturn]] void throw_again(lane_actor& lane,
                              const invocation_context& caller,
                              const agent_place& place,
                              const error& why) {
  lane.set_replayed(caller, lane.recovered()->last_of_call(place.first));
  throw why;
}

// Returns true if the agent has left no event, and the body above has later
// events than those that it has repeated: the agent had ended.
bool had_ended_silently(const lane_actor& lane,
                        const invocation_context& caller,
                        const agent_place& place) {
  const auto& recovered = *lane.recovered();
  const auto* above = recovered.at(place.above);
  return recovered.last_of_call(place.first) == 0 && above != nullptr
         && above->last > lane.replayed_to(caller);
}

} // namespace

// A loop, not recursion: an agent that hands over has ended, the next one has
// the same caller, and the stack does not grow.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          agent_call call,
                          checkpoint_ptr from) {
  auto current = from ? resumed_agent(lane, which, *from) : which;
  agent_place place{.own = {},
                    .first
                    = place_below(call.above, current.name(), call.number),
                    .above = std::move(call.above),
                    .in_order = call.in_order};
  place.own = place.first;
  if (call.repeats != nullptr && lane.recovered() != nullptr) {
    if (const auto* why = lane.recovered()->caught_at(place.first))
      throw_again(lane, *call.repeats, place, *why);
    if (had_ended_silently(lane, *call.repeats, place))
      co_return agent_end();
  }
  bool escalated = false;
  for (std::uint64_t count = 1;; ++count) {
    auto end = co_await run_one(lane, caller, current, place, branch, from);
    from = nullptr;
    escalated = escalated || end.escalated;
    if (!end.next && call.repeats != nullptr && lane.recovered() != nullptr)
      lane.set_replayed(*call.repeats,
                        lane.recovered()->last_of_call(place.first));
    if (!end.next)
      co_return agent_end(escalated, std::move(end.paused));
    current = std::move(*end.next);
    place.own = place_behind(place.first, count, current.name());
  }
}

namespace {

// Runs an agent, and notes its failure, which the body above may catch. The
// next event of the lane then tells it.
task<agent_end> run_and_note(lane_actor& lane,
                             invocation_context& caller,
                             const agent& which,
                             agent_call call,
                             checkpoint_ptr from) {
  const auto number = call.number;
  std::optional<error> failure;
  try {
    auto end = co_await run_agent(
      lane, &caller, which, caller.branch(), std::move(call), std::move(from));
    co_return end;
  } catch (const error& thrown) {
    failure = thrown;
  }
  const auto place = place_below(caller.place(), which.name(), number);
  if (lane.recovered() != nullptr)
    lane.set_replayed(caller, lane.recovered()->last_of_call(place));
  if (failure->code() != errc::cancelled)
    lane.note_failure(place, *failure);
  throw *failure;
}

} // namespace

std::uint64_t lane_actor::number_call(invocation_context& caller,
                                      const agent& which) const {
  return caller.next_call_of(which.name());
}

task<agent_end> lane_actor::run(invocation_context& caller,
                                const agent& which,
                                std::uint64_t number,
                                checkpoint_ptr from) {
  agent_call call(caller.place(), number);
  call.in_order = true;
  call.repeats = &caller;
  if (tells_places())
    return run_and_note(*this, caller, which, std::move(call), std::move(from));
  return run_agent(
    *this, &caller, which, caller.branch(), std::move(call), std::move(from));
}

} // namespace troupe::actors
