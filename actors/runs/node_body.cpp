#include "troupe/actors/runs/node_body.hpp"

#include "troupe/actors/running/user_failure.hpp"
#include "troupe/actors/runs/agent_body.hpp"
#include "troupe/actors/runs/node_items.hpp"
#include "troupe/agents/turns/llm_turn.hpp"
#include "troupe/agents/turns/open_turn.hpp"
#include "troupe/agents/turns/question.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe::actors {

namespace {

const workflow_graph::node& node_of(const node_visit& which) {
  return which.graph->nodes()[which.visit.node];
}

// The function or the tool of a node, or of a map for an item; null for other
// work.
template <class Work>
const Work* work_of(const node_visit& which) {
  const auto& work = node_of(which).work;
  return which.is_item()
           ? std::get_if<Work>(&std::get<workflow_graph::mapped>(work).work)
           : std::get_if<Work>(&work);
}

bool is_map(const node_visit& which) {
  return !which.is_item()
         && std::holds_alternative<workflow_graph::mapped>(node_of(which).work);
}

std::string who_is(const node_visit& which) {
  return fmt::format("{}node '{}' of workflow '{}'",
                     which.is_item()
                       ? fmt::format("item {} of ", which.visit.ordinal)
                       : std::string(),
                     node_of(which).name,
                     which.workflow->name());
}

// Result of a node: its output and routes, and the actions and bases of a tool,
// which the event of its end carries beside the state of the context.
struct node_work_end {
  node_output made;
  event actions_of; // Its actions are those of a tool.
  std::vector<write_basis> bases;
  // The event tells an escalation: that of an item, or of the items of a map,
  // which may not run again.
  bool escalates = false;
  // Set if the node waits for an answer; then only `question` has a meaning.
  checkpoint_ptr paused;
  // The call that asks; unset if an agent below asks.
  std::optional<function_call> question;
};

// Calls a function or a coroutine. Changes that it has recorded before it has
// to wait are dropped: it starts again in the run that brings the answer.
task<node_work_end> call_function(node_context& context,
                                  const node_function& function,
                                  const node_visit& which) {
  node_work_end end;
  std::optional<error> failure;
  try {
    if (auto made = co_await function(context))
      end.made = std::move(*made);
  } catch (const agent_paused& caught) {
    end.paused = caught.where;
  } catch (...) {
    failure = current_failure(errc::callback_failed, who_is(which));
  }
  if (failure)
    throw *failure;
  if (which.is_item() && !end.made.routes.empty())
    throw error(errc::invalid_argument,
                fmt::format("{} gives a route, but no edge begins at an item; "
                            "put a function that chooses it after the map",
                            who_is(which)));
  // The function may have caught the exception.
  if (!end.paused)
    end.paused = context.paused();
  if (end.paused)
    end.question = context.question();
  co_return end;
}

// The arguments of a tool: an object, also as JSON text, or the value of its
// only parameter, or of the only one that it needs.
json arguments_for(const tool& called,
                   const json& input,
                   const node_visit& which) {
  if (input.is_null())
    return json::object();
  if (input.is_object())
    return input;
  if (input.is_string())
    if (auto parsed
        = json::parse(input.get_ref<const std::string&>(), nullptr, false);
        parsed.is_object())
      return parsed;
  const auto& schema = called.parameters();
  const auto members = [&schema](const char* name) {
    const auto found = schema.find(name);
    return found == schema.end() ? json() : *found;
  };
  const auto properties = members("properties");
  const auto needed = members("required");
  auto made = json::object();
  if (needed.is_array() && needed.size() == 1 && needed.front().is_string())
    made[needed.front().get<std::string>()] = input;
  else if (properties.is_object() && properties.size() == 1)
    made[properties.begin().key()] = input;
  else
    throw error(errc::invalid_argument,
                fmt::format("{}: the input of a tool is an object with its "
                            "arguments, or the value of its only parameter; "
                            "'{}' has {} parameters, and the input is {}; put "
                            "a function before it that makes an object",
                            who_is(which),
                            called.name(),
                            properties.size(),
                            to_text(input).substr(0, 80)));
  return made;
}

// The user's newest decision about the call of a tool, and the id of the
// question that is asked next.
struct tool_decision {
  std::optional<tool_confirmation> confirmation;
  std::string next;
};

tool_decision find_decision(const event_slice& events,
                            const function_call& call,
                            const node_visit& which) {
  auto original = json::object();
  original["id"] = call.id;
  original["name"] = call.name;
  original["args"] = call.args.data();
  tool_decision found;
  for (std::uint64_t number = 1;; ++number) {
    found.next
      = placed_id(which.at.rewound, events, question_id(call.id, number));
    const auto asked = find_call(events, found.next);
    const auto* answer = find_response(events, found.next);
    if (!asked || answer == nullptr)
      return found;
    const auto& args = asked->call->args.data();
    if (!args.is_object() || !args.contains("originalFunctionCall")
        || !equal(args.at("originalFunctionCall"), original))
      throw error(errc::conflict,
                  fmt::format("{}: the user was asked about another call of "
                              "'{}'; start a new run",
                              who_is(which),
                              call.name));
    // An event that was appended without a run was not checked.
    auto read = read_confirmation(answer->response.data());
    if (!read)
      return found;
    found.confirmation = std::move(*read);
  }
}

// The question about a call that needs the user's confirmation. Unlike that of
// an LLM agent, its id is the same when it is asked again.
function_call make_tool_question(const std::vector<tool_call>& answered,
                                 std::string id,
                                 troupe::environment& environment) {
  auto asks = make_confirmation_event(answered, environment);
  auto asked = *asks->content.parts.front().call();
  asked.id = std::move(id);
  return asked;
}

task<node_work_end> call_tool(node_context& context,
                              const tool& called,
                              const node_visit& which,
                              const std::string& key) {
  const function_call call(
    key, called.name(), arguments_for(called, context.input(), which));
  auto decision = find_decision(context.events(), call, which);
  std::vector<tool_call> calls(1);
  calls.front().which = &called;
  calls.front().call = call;
  calls.front().confirmation = std::move(decision.confirmation);
  auto answered = co_await context.call(std::move(calls));
  auto& done = answered.front();
  if (!done.outcome)
    throw done.outcome.error();
  node_work_end end;
  if (done.requested) {
    end.question = make_tool_question(
      answered, std::move(decision.next), *context.lane().facts().environment);
    auto where = std::make_shared<checkpoint>();
    where->agent = context.agent_name();
    where->waits_for.push_back(end.question->id);
    end.paused = std::move(where);
    co_return end;
  }
  end.made.output = *done.outcome;
  end.bases = std::move(done.bases);
  end.actions_of = make_tool_event(std::move(answered));
  co_return end;
}

// The output of an agent: its last text, or the JSON value that its schema
// describes.
json output_of_agent(const agent& which, const event_ptr& last) {
  if (!last)
    return nullptr;
  auto text = last->text();
  const auto* options = std::get_if<llm_options>(&which.kind());
  if (options == nullptr || !options->output_schema)
    return text.empty() ? json() : json(std::move(text));
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(std::move(text)) : value;
}

bool is_workflow(const agent& which) {
  return std::holds_alternative<compiled_workflow>(which.kind());
}

// Makes the contexts of one visit. While a context holds the state, each change
// of the state copies a part of it, so a context exists only while it is used.
class context_source {
public:
  context_source(lane_actor& lane, const lane_start& start)
    : lane_(lane),
      start_(start),
      which_(*start.visit),
      path_(path_of(which_.at, node_of(which_).name, which_.visit.ordinal)),
      place_(place_of_attempt(path_, which_.attempt)) {}

  node_context make() const {
    node_context::attempt_facts facts;
    facts.input = *which_.visit.input;
    facts.attempt = which_.attempt;
    facts.key = which_.id;
    facts.rewound = which_.at.rewound;
    facts.waited = which_.waited;
    // A visit may also have begun in an earlier run that brought an answer.
    facts.repeats = which_.attempt > 1 || start_.from
                    || lane_.recovered() != nullptr
                    || which_.at.run != lane_.facts().invocation_id;
    // Not movable, so it is made in its place.
    return {lane_,
            *which_.workflow,
            which_.workflow->name(),
            start_.branch,
            start_.caller,
            std::move(facts)};
  }

  const lane_start& start() const noexcept { return start_; }

  const std::string& path() const noexcept { return path_; }

  /// The place of the attempt: agents below it stand at places of their own.
  const std::string& place() const noexcept { return place_; }

private:
  lane_actor& lane_;
  const lane_start& start_;
  const node_visit& which_;
  const std::string path_;
  const std::string place_;
};

// Emits the event that ends the visit. If the session has one already, from an
// attempt whose outcome was unknown, that one counts.
task<bool> end_visit(node_context& context,
                     const node_visit& which,
                     const context_source& source,
                     node_work_end work) {
  // Agents and tools give no routes themselves, and items give none.
  if (!which.is_item() && work_of<node_function>(which) == nullptr)
    if (auto route = which.graph->route_of(which.visit.node, work.made.output))
      work.made.routes.push_back(std::move(*route));
  auto told = make_end_event(which.at,
                             source.path(),
                             std::move(work.made.output),
                             work.made.routes,
                             which.visit.missing);
  told.id = placed_id(which.at.rewound, context.events(), std::move(told.id));
  const auto id = told.id;
  auto actions = std::move(work.actions_of.actions);
  actions.transfer_to_agent.clear();
  actions.escalate = actions.escalate || work.escalates;
  if (!told.actions.extra.is_null()) {
    auto fields
      = actions.extra.is_null() ? json::object() : actions.extra.data();
    fields.update(told.actions.extra.data());
    actions.extra = std::move(fields);
  }
  told.actions = std::move(actions);
  std::optional<error> failure;
  try {
    if (which.listener == nullptr) {
      const auto stored
        = co_await context.emit(std::move(told), std::move(work.bases));
      co_return stored->actions.escalate;
    }
    const auto stored = co_await context.emit_heard(
      std::move(told), std::move(work.bases), *which.listener, which.key);
    co_return stored->actions.escalate;
  } catch (const error& thrown) {
    failure = thrown;
  }
  if (failure->code() == errc::conflict)
    for (const auto& each : context.events())
      if (each->id == id) {
        if (which.listener != nullptr)
          which.listener->hear_commit(which.key, each);
        co_return each->actions.escalate;
      }
  throw *failure;
}

// Runs the agent of a node.
task<agent_end> run_agent_of(lane_actor& lane,
                             const node_visit& which,
                             const context_source& source) {
  const auto& start = source.start();
  const auto& input = *which.visit.input;
  if (!start.from && !input.is_null() && !which.visit.is_message
      && !is_workflow(start.which)) {
    auto context = source.make();
    context.isolate(start.caller->isolation_scope());
    auto told = make_input_event(which.at, source.path(), input);
    told.id = placed_id(which.at.rewound, context.events(), std::move(told.id));
    co_await context.emit(std::move(told));
  }
  lane.set_output(std::nullopt);
  auto end = co_await run_agent(lane,
                                start.caller,
                                start.which,
                                start.branch,
                                agent_call(source.place()),
                                start.from);
  if (end.paused)
    co_return end;
  node_work_end work;
  work.made.output = lane.last_output()
                       ? *lane.last_output()
                       : output_of_agent(start.which, lane.last_said());
  work.escalates = which.is_item() && end.escalated;
  auto context = source.make();
  context.isolate(start.caller->isolation_scope());
  const bool has_escalated
    = co_await end_visit(context, which, source, std::move(work));
  end.escalated = end.escalated || has_escalated;
  co_return end;
}

// Makes the context of the map for a moment, and reads which items have ended.
ended_items find_ended(const context_source& source,
                       const node_visit& which,
                       std::size_t count) {
  const auto context = source.make();
  return {context.events(), which, count};
}

// Runs the items of a map.
task<agent_end> run_map_of(lane_actor& lane,
                           const node_visit& which,
                           const context_source& source) {
  const auto items = items_in(*which.visit.input);
  const auto before = find_ended(source, which, items.size());
  auto end = co_await run_items(lane, which, items, before);
  if (end.paused)
    co_return end;
  auto context = source.make();
  context.stand_at(source.place());
  context.isolate(source.start().caller->isolation_scope());
  const ended_items ended(context.events(), which, items.size());
  node_work_end work;
  work.made.output = ended.outputs(which);
  work.escalates = ended.has_escalated();
  const bool has_escalated
    = co_await end_visit(context, which, source, std::move(work));
  co_return agent_end(has_escalated);
}

// Returns true if the node's own question has no answer yet. A node that waits
// for an agent below it has none.
bool waits_still(const checkpoint& from, const event_slice& events) {
  return !from.waits_for.empty()
         && std::ranges::all_of(from.waits_for, [&events](const auto& id) {
              return find_response(events, id) == nullptr;
            });
}

// Emits the question of a node that has to wait.
task<> emit_question(lane_actor& lane,
                     const node_visit& which,
                     const context_source& source,
                     function_call asked) {
  // No answer to the question could be used any more.
  if (lane.cancelled())
    throw *lane.cancelled();
  const auto id = asked.id;
  // The context of the body may have changes, which are dropped.
  auto context = source.make();
  context.isolate(source.start().caller->isolation_scope());
  const auto stored = co_await context.emit(
    make_question_event(which.at, source.path(), std::move(asked)));
  if (std::ranges::none_of(stored->content.parts, [&id](const part& element) {
        return element.call() != nullptr && element.call()->id == id;
      }))
    throw error(errc::conflict,
                fmt::format("a plugin has removed the call from the event by "
                            "which {} asks the user; let the plugin keep it",
                            who_is(which)));
}

} // namespace

bool runs_on_caller(const workflow_graph::node& node) noexcept {
  const auto* function = std::get_if<node_function>(&node.work);
  return function != nullptr && !function->is_coroutine() && !node.timeout;
}

task<agent_end> run_node(lane_actor& lane, const lane_start& start) {
  const auto& which = *start.visit;
  const context_source source(lane, start);
  if (work_of<std::size_t>(which) != nullptr) {
    auto end = co_await run_agent_of(lane, which, source);
    co_return end;
  }
  if (is_map(which)) {
    auto end = co_await run_map_of(lane, which, source);
    co_return end;
  }
  auto context = source.make();
  context.stand_at(source.place());
  context.isolate(start.caller->isolation_scope());
  if (const auto& from = start.from) {
    if (waits_still(*from, context.events()))
      co_return agent_end(from->escalated, from);
    context.resume(from);
  }
  node_work_end work;
  if (const auto* function = work_of<node_function>(which)) {
    work = co_await call_function(context, *function, which);
    // After a cancellation nothing of the function is committed: the lane takes
    // the letter of the cancellation first.
    if (lane.stop().stop_requested())
      co_await later_await(lane);
  } else {
    work = co_await call_tool(context, *work_of<tool>(which), which, which.id);
  }
  if (work.paused) {
    if (work.question)
      co_await emit_question(lane, which, source, std::move(*work.question));
    auto where = std::make_shared<checkpoint>(*work.paused);
    where->key = which.id;
    co_return agent_end(context.has_escalated(), std::move(where));
  }
  work.escalates = which.is_item() && context.has_escalated();
  const bool has_escalated
    = co_await end_visit(context, which, source, std::move(work));
  co_return agent_end(has_escalated || context.has_escalated());
}

} // namespace troupe::actors
