#include "troupe/actors/runs/body.hpp"

#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/agent_body.hpp"
#include "troupe/actors/runs/callbacks.hpp"
#include "troupe/actors/runs/compaction.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

// For an answer that no run waits for: a checkpoint with the answered calls.
// With it, the agent looks itself for the calls that its turn has left open.
checkpoint_ptr answered_turn(const agent& which, const content& message) {
  if (!has_responses(message)
      || !std::holds_alternative<llm_options>(which.kind()))
    return nullptr;
  auto where = std::make_shared<checkpoint>();
  where->agent = which.name();
  for (const auto& element : message.parts)
    where->turn.push_back(element.response()->id);
  return where;
}

// Limit of the search for the agent of the next turn. Imported histories may
// name no agent of the tree: the root agent then starts, instead of the whole
// history being read.
constexpr std::uint64_t turn_events_max = 4'096;

// Finds the agent that continues a conversation. Reads back in pages, which are
// not kept.
task<agent> next_turn(const agent_tree& tree, invocation_context& context) {
  const auto& message = context.user_content();
  if (const auto* found = tree.next_turn(context.events(), message))
    co_return *found;
  std::size_t page_size = 32;
  const auto begin = context.first_revision();
  for (auto first = begin; first > 1 && begin - first < turn_events_max;) {
    const auto page = co_await context.events_before(first, page_size);
    if (const auto* found = tree.next_turn(page, message))
      co_return *found;
    first = page.first_number();
    page_size = std::min<std::size_t>(page_size * 2, 256);
  }
  co_return tree.root();
}

// The agent that has delegated the task to which the message belongs; unset if
// it belongs to none. Other agents cannot continue the task.
std::optional<agent> task_owner(const lane_actor& lane,
                                const invocation_context& context) {
  const auto& events = context.events();
  const auto scope = lane.root_agent().task_names()
                       ? scope_of_number(events, lane.message_number())
                       : std::string();
  if (scope.empty())
    return std::nullopt;
  const auto name = outermost_caller(events, scope);
  if (const auto* found = lane.tree()->find(name))
    return *found;
  throw error(errc::conflict,
              name.empty()
                ? fmt::format("the session has an open task (call '{}') whose "
                              "call is not in its events; rewind the session "
                              "to before the task",
                              scope)
                : fmt::format("the session has an open task (call '{}') that "
                              "agent '{}' started, and this program has no "
                              "such agent; run a program that has it, or "
                              "rewind the session to before the task",
                              scope,
                              name));
}

// The agent that a recovered run began with.
agent agent_of_start(const lane_actor& lane, const recovered_run& recovered) {
  const auto name = name_at(recovered.start());
  if (name == lane.root_agent().name())
    return lane.root_agent();
  if (lane.tree() != nullptr)
    if (const auto* found = lane.tree()->find(name))
      return *found;
  lane.shared_run()->is_refused = true;
  throw error(errc::conflict,
              fmt::format("cannot recover the run: it began with agent '{}', "
                          "and the program has '{}'",
                          name,
                          lane.root_agent().name()));
}

// Returns true if the callbacks before a recovered run were called.
bool has_begun(const recovered_run* recovered) {
  return recovered != nullptr
         && (!recovered->start().empty() || !recovered->outside().empty());
}

// Returns true if one of them answered in place of the agents.
bool was_answered(const recovered_run* recovered) {
  return recovered != nullptr
         && std::ranges::any_of(
           recovered->outside(),
           [](const event_ptr& each) { return is_answer(*each); });
}

// Returns true if the callbacks behind it were called.
bool has_told_end(const recovered_run* recovered) {
  return recovered != nullptr
         && std::ranges::any_of(
           recovered->outside(), [](const event_ptr& each) {
             return step_in(*each) == agent_step::after_run;
           });
}

// Calls the callbacks before the run. Returns true if one has answered.
task<bool> begin_run(lane_actor& lane, invocation_context& context) {
  const auto* recovered = lane.recovered();
  if (has_begun(recovered))
    co_return was_answered(recovered);
  callback_context& seen = context;
  const std::vector<agent_callback> no_more;
  context.set_step(agent_step::before_run);
  auto answer = co_await first_answer(lane.shared_run()->shared->plugins,
                                      &plugin::before_run,
                                      no_more,
                                      "before_run",
                                      context,
                                      seen);
  const bool has_answer = answer.has_value();
  if (answer) {
    event said(std::move(*answer));
    mark_answer(said);
    co_await context.emit(std::move(said));
  } else {
    co_await context.emit_leftovers();
  }
  context.set_step(agent_step::body);
  co_return has_answer;
}

// Starts the agents. A conversation that was handed over continues with its
// last agent; one that waits for an answer from outside continues where it
// paused.
task<agent_end> run_agents(lane_actor& lane, invocation_context& context) {
  const auto& root_agent = lane.root_agent();
  const auto& claim = lane.shared_run()->claim;
  const auto resumed
    = claim ? find_pause(context.events(), claim->pause_id) : std::nullopt;
  auto which = root_agent;
  checkpoint_ptr from;
  const auto* recovered = lane.recovered();
  if (resumed) {
    from = resumed->where;
  } else if (auto owner = task_owner(lane, context)) {
    which = std::move(*owner);
  } else {
    if (recovered != nullptr && !recovered->start().empty())
      which = agent_of_start(lane, *recovered);
    else if (lane.tree() != nullptr)
      which = co_await next_turn(*lane.tree(), context);
    from = answered_turn(which, context.user_content());
  }
  lane.shared_run()->went_on = true;
  auto end = co_await run_agent(
    lane, nullptr, which, {}, agent_call(), std::move(from));
  co_return end;
}

task<agent_end> run_all(lane_actor& lane, invocation_context& context) {
  const auto& plugins = lane.shared_run()->shared->plugins;
  agent_end end;
  co_await start_budget(*lane.shared_run(), context);
  const bool is_answered = co_await begin_run(lane, context);
  if (!is_answered)
    end = co_await run_agents(lane, context);
  context.renew();
  if (!has_told_end(lane.recovered())) {
    tell_run_end(plugins, context);
    context.set_step(agent_step::after_run);
    co_await context.emit_leftovers();
    context.set_step(agent_step::body);
  }
  // Last: a run that fails before has not paused. Its pause is its last event,
  // so only other runs make summaries.
  if (end.paused)
    co_await context.emit(
      make_pause_event(lane.root_agent().name(), *end.paused));
  else
    co_await compact(lane, context);
  co_return end;
}

} // namespace

task<agent_end> run_root(lane_actor& lane) {
  invocation_context context(lane, lane.root_agent(), "model", {}, nullptr);
  agent_end end;
  std::optional<error> failure;
  try {
    end = co_await run_all(lane, context);
  } catch (...) {
    failure
      = current_failure(errc::callback_failed,
                        fmt::format("agent '{}'", lane.root_agent().name()));
  }
  if (!failure)
    co_return end;
  if (failure->code() != errc::cancelled)
    failure = tell_failure(lane.shared_run()->shared->plugins,
                           &plugin::on_run_error,
                           "on_run_error",
                           context,
                           std::move(*failure));
  throw *failure;
}

} // namespace troupe::actors
