#include "troupe/actors/runs/llm_body.hpp"

#include "troupe/actors/runs/agent_body.hpp"
#include "troupe/actors/runs/callbacks.hpp"
#include "troupe/agents/turns/cut_off_turn.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/fence.hpp"
#include "troupe/agents/turns/llm_turn.hpp"
#include "troupe/agents/turns/merged_bases.hpp"
#include "troupe/agents/turns/open_turn.hpp"
#include "troupe/agents/turns/step_times.hpp"
#include "troupe/agents/turns/visible_contents.hpp"
#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/contexts/lanes/recovered_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace troupe::actors {

namespace {

std::vector<tool_declaration> declare(const std::vector<tool>& tools) {
  std::vector<tool_declaration> declared;
  declared.reserve(tools.size());
  for (const auto& known : tools)
    if (known.can_be_called())
      declared.push_back(known.declaration());
  return declared;
}

// Lets the tools change the request, in their order.
task<void> prepare(const std::vector<tool>& tools,
                   invocation_context& context,
                   model_request& request) {
  readonly_context& seen = context;
  for (const auto& known : tools) {
    if (!known.options().prepare)
      continue;
    try {
      co_await known.options().prepare(seen, request);
    } catch (...) {
      throw current_failure(
        errc::callback_failed,
        fmt::format("the preparation of a request by tool '{}' of agent '{}'",
                    known.name(),
                    context.agent_name()));
    }
  }
}

std::vector<tool_call> calls_of(const event& said,
                                const std::vector<tool>& tools) {
  std::vector<tool_call> calls;
  for (const auto& element : said.content.parts) {
    const auto* wanted = element.call();
    if (wanted == nullptr)
      continue;
    auto& added = calls.emplace_back();
    added.call = *wanted;
    const auto found = std::ranges::find(tools, wanted->name, &tool::name);
    if (found != tools.end() && found->can_be_called()) {
      added.which = &*found;
      continue;
    }
    std::vector<std::string> names;
    names.reserve(tools.size());
    for (const auto& known : tools)
      if (known.can_be_called())
        names.push_back(known.name());
    added.outcome
      = error(errc::not_found,
              fmt::format("there is no tool '{}'; the tools are: {}",
                          wanted->name,
                          fmt::join(names, ", ")));
  }
  return calls;
}

// Refuses an answer that no event can hold. The append checks the event as
// well, but could not tell a failure of the model from one of a callback.
void check_answer(const event& said,
                  const llm_options& options,
                  const size_limits& limits) {
  const auto refuse = [&options](std::string_view why) {
    throw error(
      errc::model_failed,
      fmt::format("the model's answer to agent '{}': {}", options.name, why));
  };
  for (const auto& element : said.content.parts)
    if (const auto* wanted = element.call();
        wanted != nullptr && !wanted->args.data().is_object())
      refuse(
        fmt::format("the arguments for '{}' are not an object", wanted->name));
  if (auto fits = check_event(said, limits); !fits)
    refuse(fits.error().message());
}

// Returns true if the failure ends the run without asking callbacks: the model
// has not failed.
bool ends_run(const error& failure, const invocation_context& context) {
  return context.stop().stop_requested()
         || failure.code() == errc::limit_exceeded;
}

// With `contents_max` an agent sees events without summaries. A delegated agent
// does, too, since a summary covers the conversation outside of it.
include_contents contents_of(const invocation_context& context,
                             const llm_options& options,
                             bool reads_summaries) {
  if (!call_of_branch(context.branch()).empty())
    return options.include_contents == include_contents::none
             ? include_contents::none
             : include_contents::all;
  return reads_summaries && !options.contents_max
             && options.include_contents == include_contents::all
           ? include_contents::since_summary
           : options.include_contents;
}

// The other agents that an LLM agent can reach; null if there are none.
struct reachable {
  const transfer_targets* transfers = nullptr;
  const delegations* below = nullptr;

  bool is_task(std::string_view name) const {
    return below != nullptr
           && std::ranges::find(below->tasks, name) != below->tasks.end();
  }
};

// The tool that hands over, the agent's tools, those of its toolsets, and those
// that stand for other agents.
task<std::vector<tool>> find_tools(const invocation_context& context,
                                   const llm_options& options,
                                   reachable others) {
  auto tools = options.tools;
  const auto is_taken = [&tools, &others](std::string_view name) {
    return name == transfer_tool_name || name == confirmation_name
           || name == request_input_name || name == finish_task_name
           || std::ranges::find(tools, name, &tool::name) != tools.end()
           || (others.below != nullptr
               && std::ranges::find(others.below->agents, name, &agent::name)
                    != others.below->agents.end());
  };
  for (const auto& each : options.toolsets) {
    const auto offered = co_await each->tools(context.stop());
    if (!offered)
      throw offered.error();
    for (const auto& one : **offered)
      if (!is_taken(one.name()))
        tools.push_back(one);
  }
  if (options.mode == agent_mode::task)
    tools.push_back(finish_task_tool(options));
  if (others.below != nullptr)
    std::ranges::copy(others.below->tools, std::back_inserter(tools));
  // The first one, as in ADK.
  if (others.transfers != nullptr)
    tools.insert(tools.begin(), others.transfers->hand_over);
  co_return tools;
}

// Lists the ids of calls whose responses may come in a later run. The parent
// answers the calls of tasks.
void mark_long_running(event& said,
                       const std::vector<tool>& tools,
                       const reachable& others) {
  for (const auto& element : said.content.parts) {
    const auto* wanted = element.call();
    if (wanted == nullptr)
      continue;
    const auto found = std::ranges::find(tools, wanted->name, &tool::name);
    if (found != tools.end() && found->options().long_running
        && !others.is_task(wanted->name))
      said.long_running_tool_ids.push_back(wanted->id);
  }
}

// The parts of the system instruction behind the agent's own, but for those
// that tools prepare.
std::vector<std::string> hints_for(const llm_options& options,
                                   const std::vector<tool>& tools,
                                   const transfer_targets* transfers) {
  std::vector<std::string> hints;
  if (transfers != nullptr)
    hints.push_back(transfers->hint);
  if (options.mode == agent_mode::task)
    hints.push_back(finish_task_hint());
  if (std::ranges::any_of(tools, [](const tool& each) {
        return each.options().is_described_by_server;
      }))
    hints.push_back(tool_description_preamble());
  return hints;
}

task<model_request> make_request(const invocation_context& context,
                                 const llm_options& options,
                                 include_contents which,
                                 const agent& root_agent,
                                 const std::vector<tool>& tools,
                                 const transfer_targets* transfers) {
  model_request request;
  request.agent = options.name;
  request.contents = visible_contents(context.events(),
                                      options.name,
                                      context.branch(),
                                      which,
                                      context.lane().message_number(),
                                      context.lane().view().trimmed_to + 1,
                                      context.lane().visit_key());
  if (const auto call = call_of_branch(context.branch()); !call.empty())
    if (auto asked = request_of_call(context.events(), call, options.mode))
      request.contents.insert(
        request.contents.begin(),
        std::make_shared<const content>(std::move(*asked)));
  std::string global;
  if (const auto* above = std::get_if<llm_options>(&root_agent.kind()))
    global = co_await resolve_instruction(above->global_instruction, context);
  auto own = co_await resolve_instruction(options.instruction, context);
  request.system_instruction
    = assemble_instruction(options,
                           global,
                           std::move(own),
                           hints_for(options, tools, transfers),
                           request.contents);
  request.identity = identity_of(options);
  request.tools = declare(tools);
  request.vendor_tools = options.vendor_tools;
  // The schema of a task is that of `finish_task`.
  if (options.output_schema && options.mode != agent_mode::task)
    request.response_schema = options.output_schema->text();
  if (!options.generation_config.empty())
    request.generation_config = options.generation_config;
  co_return request;
}

// Returns the answer of the model or of a callback. `step` gets the times of
// the model.
task<model_response> ask(invocation_context& context,
                         const llm_options& options,
                         const std::vector<plugin>& plugins,
                         model_request request,
                         step_time& step) {
  callback_context& seen = context;
  auto answer = co_await first_answer(plugins,
                                      &plugin::before_model,
                                      options.before_model,
                                      "before_model",
                                      context,
                                      seen,
                                      request);
  std::optional<error> failure;
  // Copy of the request for callbacks that handle a failure.
  model_request asked;
  if (!answer) {
    const bool is_wanted
      = !options.on_model_error.empty()
        || std::ranges::any_of(plugins, [](const plugin& each) {
             return static_cast<bool>(each.on_model_error);
           });
    if (is_wanted)
      asked = request;
    const auto& facts = context.lane().facts();
    if (facts.step_times) {
      step.name = options.model->name();
      step.began = facts.environment->now();
    }
    try {
      answer = co_await context.ask(options.model, std::move(request));
    } catch (const error& thrown) {
      failure = thrown;
    }
    if (facts.step_times)
      step.ended = facts.environment->now();
  }
  if (failure) {
    if (ends_run(*failure, context))
      throw *failure;
    const auto& why = *failure;
    answer = co_await first_answer(plugins,
                                   &plugin::on_model_error,
                                   options.on_model_error,
                                   "on_model_error",
                                   context,
                                   seen,
                                   std::as_const(asked),
                                   why);
    if (!answer)
      throw *failure;
  }
  answer->partial = false;
  auto instead = co_await first_answer(plugins,
                                       &plugin::after_model,
                                       options.after_model,
                                       "after_model",
                                       context,
                                       seen,
                                       *answer);
  co_return instead ? std::move(*instead) : std::move(*answer);
}

// A failed tool ends the agent if its options say so.
void check_failures(const std::vector<tool_call>& answered) {
  for (const auto& done : answered)
    if (!done.outcome && done.which != nullptr
        && done.which->options().on_failure == tool_failure::end_run)
      throw done.outcome.error();
}

// The agent to which the tool's event hands over, if any.
std::optional<agent> successor(const event& told,
                               const transfer_targets* transfers,
                               const invocation_context& context) {
  const auto& name = told.actions.transfer_to_agent;
  if (name.empty())
    return std::nullopt;
  if (transfers != nullptr)
    if (const auto found
        = std::ranges::find(transfers->targets, name, &agent::name);
        found != transfers->targets.end())
      return *found;
  throw error(errc::invalid_argument,
              fmt::format("agent '{}' cannot hand over to '{}'",
                          context.agent_name(),
                          name));
}

void tell_step(const lane_actor& lane,
               const invocation_context& context,
               event& said,
               agent_step step) {
  if (lane.tells_places())
    set_place(said, context.place(), step);
}

// The outcome of a turn's calls.
struct turn_end {
  explicit turn_end(std::optional<agent> next_, bool is_over_)
    : next(std::move(next_)),
      is_over(is_over_) {}

  /// The agent to which this one hands over.
  std::optional<agent> next;
  /// True if the agent has ended.
  bool is_over;
};

// `turn` lists all calls of the turn that have waited; if empty, those are
// `ids`.
agent_paused pause_for(const llm_options& options,
                       std::vector<std::string> ids,
                       std::vector<std::string> turn = {}) {
  auto where = std::make_shared<checkpoint>();
  where->agent = options.name;
  where->waits_for = std::move(ids);
  where->turn = turn.empty() ? where->waits_for : std::move(turn);
  return {std::move(where)};
}

bool says_anything(const event& told) {
  return !told.content.parts.empty() || has_effect(told.actions);
}

// The calls of this agent's tasks that have no result yet.
std::vector<function_call> open_tasks_of(const lane_actor& lane,
                                         const invocation_context& context,
                                         const reachable& others) {
  if (others.below == nullptr || others.below->tasks.empty())
    return {};
  return open_tasks(context.events(),
                    context.agent_name(),
                    context.branch(),
                    others.below->tasks,
                    lane.message_number());
}

// Runs the calls and emits their results. Throws `agent_paused` if an answer
// has to come from outside, or some of the turn are `awaited` already. While a
// task of the agent is open, the agent neither ends nor hands over.
task<turn_end> run_calls(lane_actor& lane,
                         invocation_context& context,
                         const llm_options& options,
                         reachable others,
                         std::vector<tool_call> calls,
                         std::vector<std::string> awaited = {}) {
  auto answered = co_await context.call(std::move(calls));
  check_failures(answered);
  for (const auto& each : answered)
    if (is_pending(each) && !each.requested && !others.is_task(each.call.name))
      awaited.push_back(each.call.id);
  auto question
    = make_confirmation_event(answered, *context.lane().facts().environment);
  const auto steps = context.lane().facts().step_times
                       ? steps_of(answered)
                       : std::vector<step_time>();
  auto bases = merge_bases(answered);
  auto told = make_tool_event(std::move(answered));
  tell_steps(told, steps);
  tell_step(lane, context, told, agent_step::tools);
  if (!awaited.empty() && lane.tells_places())
    set_fact(told, made_fact, awaited);
  const bool has_task = !open_tasks_of(lane, context, others).empty();
  const auto refused
    = has_task ? std::exchange(told.actions.transfer_to_agent, std::string())
               : std::string();
  std::optional<agent> next;
  bool is_over = false;
  if (says_anything(told)) {
    const auto stored
      = co_await context.emit(std::move(told), std::move(bases));
    next = successor(*stored, others.transfers, context);
    is_over = !has_task
              && ((is_final(*stored) && !stored->content.parts.empty())
                  || (options.mode == agent_mode::task && ends_task(*stored)));
  }
  if (!refused.empty())
    throw error(errc::invalid_argument,
                fmt::format("agent '{}' cannot hand over to '{}' in a turn "
                            "that starts a task",
                            context.agent_name(),
                            refused));
  const auto made = awaited;
  if (question) {
    std::ranges::copy(question->long_running_tool_ids,
                      std::back_inserter(awaited));
    tell_step(lane, context, *question, agent_step::question);
    if (!made.empty() && lane.tells_places())
      set_fact(*question, made_fact, made);
    co_await context.emit(std::move(*question));
  }
  if (!awaited.empty())
    throw pause_for(options, std::move(awaited));
  is_over = is_over || next.has_value();
  co_return turn_end(std::move(next), is_over);
}

// The remaining calls of a turn that was left open.
std::vector<tool_call> calls_of(open_turn open,
                                const std::vector<tool>& tools) {
  event made;
  for (const auto& each : open.decided)
    made.content.parts.emplace_back(each.call);
  auto calls = calls_of(made, tools);
  for (std::size_t index = 0; index < calls.size(); ++index) {
    auto& answer = open.decided[index].confirmation;
    if (answer) {
      calls[index].confirmation = std::move(*answer);
    } else {
      calls[index].which = nullptr;
      calls[index].outcome = answer.error();
    }
  }
  return calls;
}

// Continues a turn that has waited for answers from outside. Calls that were
// `made` before the run was recovered wait for their result.
task<turn_end> finish_turn(lane_actor& lane,
                           invocation_context& context,
                           const llm_options& options,
                           reachable others,
                           const std::vector<tool>& tools,
                           std::vector<std::string> made) {
  const auto& turn = context.resumed_from()->turn;
  auto open
    = find_open_turn(context.events(), options.name, context.branch(), turn);
  std::erase_if(open.decided, [&made](const auto& each) {
    return std::ranges::find(made, each.call.id) != made.end();
  });
  if (!open.awaited.empty() || (open.decided.empty() && !made.empty())) {
    for (auto& id : made)
      if (std::ranges::find(open.awaited, id) == open.awaited.end())
        open.awaited.push_back(std::move(id));
    throw pause_for(options, std::move(open.awaited), turn);
  }
  const auto whom = open.transfer_to_agent;
  if (!open.decided.empty()) {
    auto end = co_await run_calls(lane,
                                  context,
                                  options,
                                  others,
                                  calls_of(std::move(open), tools),
                                  std::move(made));
    if (end.is_over)
      co_return end;
  }
  event handed_over;
  handed_over.actions.transfer_to_agent = whom;
  auto next = successor(handed_over, others.transfers, context);
  const bool is_over = next.has_value();
  co_return turn_end(std::move(next), is_over);
}

// -- tasks --------------------------------------------------------------------

// A turn that delegates a task neither ends nor hands over: its result is not
// known yet.
void refuse_beside_tasks(std::vector<tool_call>& calls,
                         const reachable& others) {
  if (std::ranges::none_of(calls, [&others](const tool_call& each) {
        return others.is_task(each.call.name);
      }))
    return;
  for (auto& each : calls)
    if (each.call.name == finish_task_name
        || each.call.name == transfer_tool_name) {
      each.which = nullptr;
      each.outcome
        = error(errc::tool_failed,
                fmt::format("'{}' was not called, because the same turn hands "
                            "a task to another agent; call it alone, when the "
                            "result of the task has come",
                            each.call.name));
    }
}

event response_event(const function_call& call, json response) {
  event said(content(
    "user",
    {part(function_response(call.id, call.name, std::move(response)))}));
  return said;
}

// Runs the agent of one call until it ends or asks the user. Returns the
// response to the call; unset if the task stays open.
task<std::optional<json>> run_task(lane_actor& lane,
                                   invocation_context& context,
                                   const agent& which,
                                   const function_call& call,
                                   std::uint64_t number,
                                   checkpoint_ptr from) {
  const auto& options = std::get<llm_options>(which.kind());
  auto ended = end_of_task(context.events(), call.id);
  if (!ended) {
    if (auto fits = delegation_tool(which).check(call.args.data()); !fits) {
      auto failed = json::object();
      failed["error"]
        = fmt::format("the arguments do not fit: {}", fits.error().message());
      co_return failed;
    }
    auto branch = delegation_branch(context.branch(), which.name(), call.id);
    agent_call in_order(context.place(), number);
    in_order.in_order = true;
    auto end = co_await run_agent(lane,
                                  &context,
                                  which,
                                  std::move(branch),
                                  std::move(in_order),
                                  std::move(from));
    context.renew();
    if (end.escalated)
      context.mark_escalated();
    if (end.paused) {
      auto where = std::make_shared<checkpoint>();
      where->agent = context.agent_name();
      where->at = std::move(end.paused);
      throw agent_paused{std::move(where)};
    }
    ended = end_of_task(context.events(), call.id);
  }
  if (!ended)
    co_return std::nullopt;
  co_return response_of_task(options, std::move(*ended));
}

// Runs the tasks that have no result yet, one after another, and emits their
// results. Returns true if one of them waits for a message of the user. The
// first one continues at `from`, if that is not null.
task<bool> run_tasks(lane_actor& lane,
                     invocation_context& context,
                     const reachable& others,
                     checkpoint_ptr from) {
  for (;;) {
    const auto open = open_tasks_of(lane, context, others);
    if (from
        && (open.empty()
            || !is_in_task(
              context.events(),
              scope_of_number(context.events(), lane.message_number()),
              open.front().id)))
      throw error(errc::conflict,
                  fmt::format("cannot resume the run: the task of agent '{}' "
                              "in which it paused has ended; send a new "
                              "message instead of an answer",
                              from->agent));
    if (open.empty())
      co_return false;
    const auto& call = open.front();
    const auto found
      = std::ranges::find(others.below->agents, call.name, &agent::name);
    const auto number = context.next_call_of(call.name);
    auto response = co_await run_task(
      lane, context, *found, call, number, std::exchange(from, nullptr));
    if (!response)
      co_return true;
    auto told = response_event(call, std::move(*response));
    tell_step(lane, context, told, agent_step::task);
    co_await context.emit(std::move(told));
  }
}

// -- recovered runs -----------------------------------------------------------

// The events of the agent before the run was recovered; null if there are none.
const recovered_run::part* left_by(const lane_actor& lane,
                                   const invocation_context& context) {
  return lane.recovered() != nullptr ? lane.recovered()->at(context.place())
                                     : nullptr;
}

// The turn of the agent before the run was recovered; unset if it was not, or
// if the agent had not begun.
std::optional<cut_off_turn> cut_off(const lane_actor& lane,
                                    const invocation_context& context) {
  const auto* left = left_by(lane, context);
  return left != nullptr ? std::optional(find_cut_off_turn(left->own))
                         : std::nullopt;
}

// Counts the results of tasks that are stored.
void count_tasks(const lane_actor& lane, invocation_context& context) {
  const auto* left = left_by(lane, context);
  if (left == nullptr)
    return;
  for (const auto& each : left->own) {
    const auto step = step_in(*each);
    if (step == agent_step::task)
      for (const auto& element : each->content.parts)
        if (const auto* response = element.response())
          context.next_call_of(response->name);
  }
}

// Returns the number of answers of models that are stored.
std::uint64_t answers_left(const lane_actor& lane,
                           const invocation_context& context) {
  const auto* left = left_by(lane, context);
  return left == nullptr ? 0
                         : static_cast<std::uint64_t>(std::ranges::count(
                           left->own, agent_step::body, [](const auto& each) {
                             return step_in(*each);
                           }));
}

// Returns true if the run has stored the result of a task of the agent: the
// task in which an earlier run paused has ended then.
bool has_task_result(const lane_actor& lane,
                     const invocation_context& context) {
  const auto* left = left_by(lane, context);
  return left != nullptr && left->has(agent_step::task);
}

// Continues a turn whose process ended behind the model's answer. Calls that
// have no result are made again, with the same ids.
task<turn_end> finish_cut_off(lane_actor& lane,
                              invocation_context& context,
                              const llm_options& options,
                              reachable others,
                              const std::vector<tool>& tools,
                              cut_off_turn turn) {
  auto calls = calls_of(*turn.made, tools);
  refuse_beside_tasks(calls, others);
  if (!turn.has_called) {
    auto end
      = co_await run_calls(lane, context, options, others, std::move(calls));
    co_return end;
  }
  auto awaited = std::move(turn.asked);
  const bool has_asked = !awaited.empty();
  std::vector<tool_call> open;
  for (auto& each : calls) {
    const auto is_in = [&each](const std::vector<std::string>& ids) {
      return std::ranges::find(ids, each.call.id) != ids.end();
    };
    if (is_in(turn.answered) || others.is_task(each.call.name))
      continue;
    // Without a question, a call that asked is made again to ask.
    if (is_in(turn.pending))
      awaited.push_back(each.call.id);
    else if (!has_asked)
      open.push_back(std::move(each));
  }
  if (!open.empty()) {
    auto end = co_await run_calls(
      lane, context, options, others, std::move(open), std::move(awaited));
    co_return end;
  }
  if (!awaited.empty())
    throw pause_for(options, std::move(awaited));
  event handed_over;
  handed_over.actions.transfer_to_agent = std::move(turn.transfer_to_agent);
  auto next = successor(handed_over, others.transfers, context);
  const bool is_over = turn.is_over || next.has_value();
  co_return turn_end(std::move(next), is_over);
}

} // namespace

task<std::optional<agent>> run_llm(lane_actor& lane,
                                   invocation_context& context,
                                   const agent& which,
                                   const llm_options& options) {
  const auto& shared = *lane.shared_run()->shared;
  const auto contents
    = contents_of(context, options, shared.compaction != nullptr);
  reachable others;
  if (const auto* tree = lane.tree()) {
    others.transfers = tree->transfers_of(options.name);
    others.below = tree->delegations_of(options.name);
  }
  if (others.below == nullptr
      && std::ranges::any_of(which.sub_agents(), is_delegated))
    throw error(errc::invalid_argument,
                fmt::format("agent '{}' has sub-agents in mode task or "
                            "single_turn, but is not in the agent tree of this "
                            "run; add it to sub_agents of the run's agent",
                            options.name));
  auto tools = co_await find_tools(context, options, others);
  checkpoint_ptr task_waits;
  auto cut = cut_off(lane, context);
  count_tasks(lane, context);
  if (cut && cut->made) {
    auto end = co_await finish_cut_off(
      lane, context, options, others, tools, std::move(*cut));
    if (end.is_over)
      co_return std::move(end.next);
  } else if (context.is_resumed()) {
    task_waits
      = has_task_result(lane, context) ? nullptr : context.resumed_from()->at;
    if (!task_waits) {
      std::vector<std::string> made;
      if (cut)
        made = std::move(cut->pending);
      auto end = co_await finish_turn(
        lane, context, options, others, tools, std::move(made));
      if (end.is_over)
        co_return std::move(end.next);
    }
  }
  const bool is_asking
    = co_await run_tasks(lane, context, others, std::move(task_waits));
  if (is_asking)
    co_return std::nullopt;
  auto answers = answers_left(lane, context);
  for (bool is_first = true;; is_first = false) {
    // Requests are numbered by their answers, also those of callbacks.
    context.skip_requests(answers++);
    if (!is_first && !options.toolsets.empty())
      tools = co_await find_tools(context, options, others);
    context.renew();
    // Callbacks of an earlier turn are other steps.
    context.state().reads().forget();
    auto request = co_await make_request(
      context, options, contents, lane.root_agent(), tools, others.transfers);
    co_await prepare(tools, context, request);
    step_time asked;
    auto response = co_await ask(
      context, options, shared.plugins, std::move(request), asked);
    auto said = make_response_event(
      options, std::move(response), *context.lane().facts().environment);
    if (!said)
      throw said.error();
    tell_steps(*said, {&asked, 1});
    mark_long_running(*said, tools, others);
    check_answer(*said, options, context.lane().facts().limits);
    const auto stored = co_await context.emit(std::move(*said));
    auto calls = calls_of(*stored, tools);
    if (calls.empty())
      co_return std::nullopt;
    refuse_beside_tasks(calls, others);
    auto end
      = co_await run_calls(lane, context, options, others, std::move(calls));
    if (end.is_over)
      co_return std::move(end.next);
    const bool waits = co_await run_tasks(lane, context, others, nullptr);
    if (waits)
      co_return std::nullopt;
  }
}

} // namespace troupe::actors
