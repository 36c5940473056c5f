#include "troupe/actors/agent_body.hpp"

#include "troupe/actors/callbacks.hpp"
#include "troupe/actors/llm_body.hpp"
#include "troupe/agents/llm_turn.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace troupe::actors {

namespace {

// Suspends for a fan-out; the lane starts its lanes and goes on when they have
// ended.
class lanes_await {
public:
  lanes_await(lane_actor& lane, fan_out request)
    : lane_(lane),
      request_(std::move(request)) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    lane_.start_lanes(request_);
  }

  result<bool> await_resume() { return std::move(request_.outcome); }

private:
  lane_actor& lane_;
  fan_out request_;
};

// Lets the lane hear what was sent to it, and other actors have their turn.
class turn_await {
public:
  explicit turn_await(lane_actor& lane) : lane_(lane) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) { lane_.post(waiting); }

  void await_resume() const {
    if (lane_.cancelled())
      throw *lane_.cancelled();
  }

private:
  lane_actor& lane_;
};

// Refuses a call of an agent that is on the stack already, and a stack that is
// too deep.
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
      // Sub-agents that never wait must not keep a cancellation out.
      co_await turn_await(lane);
    }
}

task<> run_lanes(lane_actor& lane,
                 invocation_context& context,
                 const agent& which,
                 const parallel_options& options) {
  fan_out request;
  request.which = &which;
  request.caller = &context;
  request.lanes_max = std::min(options.lanes_max.value_or(SIZE_MAX),
                               lane.shared_run()->options.lanes_max);
  auto outcome = co_await lanes_await(lane, std::move(request));
  if (!outcome)
    throw outcome.error();
  if (*outcome)
    context.mark_escalated();
}

// Gives the agent that goes on in the place of this one, if any.
task<std::optional<agent>>
run_body(lane_actor& lane, invocation_context& context, const agent& which) {
  const auto& kind = which.kind();
  if (const auto* llm = std::get_if<llm_options>(&kind)) {
    auto next = co_await run_llm(context, *llm, *lane.shared_run());
    co_return next;
  }
  if (std::holds_alternative<sequential_options>(kind))
    co_await run_sequence(context, which);
  else if (const auto* lanes = std::get_if<parallel_options>(&kind))
    co_await run_lanes(lane, context, which, *lanes);
  else if (const auto* loop = std::get_if<loop_options>(&kind))
    co_await run_loop(lane, context, which, *loop);
  else
    co_await std::get<custom_options>(kind).run(context);
  co_return std::nullopt;
}

// Says what a callback says in the agent's place, or what it only wrote.
// Whether one has answered.
task<bool> call_back(invocation_context& context,
                     const agent& which,
                     const std::vector<agent_callback>& callbacks,
                     std::string_view place) {
  auto answer = co_await first_answer(
    callbacks, place, context, static_cast<callback_context&>(context));
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

// Tells the observer of the run that an agent starts and, however it ends, that
// it has ended.
class announcement {
public:
  announcement(const run_options& options, const std::string& name)
    : options_(options),
      name_(name) {
    if (options_.on_agent)
      options_.on_agent(name_, true);
  }

  ~announcement() {
    if (options_.on_agent)
      options_.on_agent(name_, false);
  }

  announcement(const announcement&) = delete;
  announcement& operator=(const announcement&) = delete;

private:
  const run_options& options_;
  const std::string& name_;
};

// What came of one agent, without those that went on in its place.
struct agent_end {
  agent_end(bool escalated_, std::optional<agent> next_)
    : escalated(escalated_),
      next(std::move(next_)) {}

  bool escalated;
  std::optional<agent> next;
};

task<agent_end> run_one(lane_actor& lane,
                        const invocation_context* caller,
                        const agent& which,
                        std::string branch) {
  check_stack(lane, caller, which);
  const announcement announced(lane.shared_run()->options, which.name());
  invocation_context context(
    lane, which, which.name(), std::move(branch), caller);
  std::optional<agent> next;
  const bool is_answered
    = co_await call_back(context, which, which.before_agent(), "before_agent");
  if (!is_answered) {
    next = co_await run_body(lane, context, which);
    co_await context.emit_leftovers();
    co_await call_back(context, which, which.after_agent(), "after_agent");
  }
  co_return agent_end(context.has_escalated(), std::move(next));
}

} // namespace

// Who hands over is done: the next agent has the same caller, and the stack
// does not grow however often they hand over.
task<bool> run_agent(lane_actor& lane,
                     const invocation_context* caller,
                     const agent& which,
                     std::string branch) {
  auto current = which;
  bool escalated = false;
  for (;;) {
    auto end = co_await run_one(lane, caller, current, branch);
    escalated = escalated || end.escalated;
    if (!end.next)
      co_return escalated;
    current = std::move(*end.next);
  }
}

task<bool> lane_actor::run(invocation_context& caller, const agent& which) {
  return run_agent(*this, &caller, which, caller.branch());
}

} // namespace troupe::actors
