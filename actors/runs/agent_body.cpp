#include "troupe/actors/runs/agent_body.hpp"

#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/callbacks.hpp"
#include "troupe/actors/runs/lanes_body.hpp"
#include "troupe/actors/runs/llm_body.hpp"
#include "troupe/actors/runs/workflow_body.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/llm_turn.hpp"

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
                     std::string_view place) {
  callback_context& seen = context;
  // The body and its callbacks are steps of their own.
  seen.state().reads().forget();
  auto answer
    = co_await first_answer(plugins, hook, callbacks, place, context, seen);
  if (!answer) {
    co_await context.emit_leftovers();
    co_return false;
  }
  model_response response(std::move(*answer));
  const auto* options = std::get_if<llm_options>(&which.kind());
  auto said = make_response_event(options != nullptr ? *options : llm_options(),
                                  std::move(response),
                                  *context.lane().facts().environment);
  if (!said)
    throw said.error();
  co_await context.emit(std::move(*said));
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

// Runs the agent with the callbacks around it.
task<one_end> run_around(lane_actor& lane,
                         invocation_context& context,
                         const agent& which,
                         const checkpoint_ptr& from) {
  const auto& plugins = lane.shared_run()->shared->plugins;
  if (from) {
    context.resume(from);
  } else {
    const bool is_answered = co_await call_back(context,
                                                plugins,
                                                &plugin::before_agent,
                                                which,
                                                which.before_agent(),
                                                "before_agent");
    if (is_answered)
      co_return agent_end(context.has_escalated());
    context.state().reads().forget();
  }
  std::optional<agent> next;
  checkpoint_ptr where;
  try {
    next = co_await run_body(lane, context, which);
  } catch (const agent_paused& paused) {
    where = paused.where;
  }
  // A custom body may have caught the exception.
  if (!where)
    where = context.paused();
  if (from && from->escalated)
    context.mark_escalated();
  co_await context.emit_leftovers();
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
                     "after_agent");
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
                      std::string branch,
                      const checkpoint_ptr& from) {
  check_stack(lane, caller, which);
  check_reads(lane, which);
  const announcement announced(lane.shared_run()->shared->plugins,
                               which.name());
  invocation_context context(
    lane, which, which.name(), std::move(branch), caller);
  context.isolate(scope_for(lane, which, context));
  std::optional<one_end> end;
  std::optional<error> failure;
  try {
    end = co_await run_around(lane, context, which, from);
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

} // namespace

// A loop, not recursion: an agent that hands over has ended, the next one has
// the same caller, and the stack does not grow.
task<agent_end> run_agent(lane_actor& lane,
                          const invocation_context* caller,
                          const agent& which,
                          std::string branch,
                          checkpoint_ptr from) {
  auto current = from ? resumed_agent(lane, which, *from) : which;
  bool escalated = false;
  for (;;) {
    auto end = co_await run_one(lane, caller, current, branch, from);
    from = nullptr;
    escalated = escalated || end.escalated;
    if (!end.next)
      co_return agent_end(escalated, std::move(end.paused));
    current = std::move(*end.next);
  }
}

task<agent_end> lane_actor::run(invocation_context& caller,
                                const agent& which,
                                checkpoint_ptr from) {
  return run_agent(*this, &caller, which, caller.branch(), std::move(from));
}

} // namespace troupe::actors
