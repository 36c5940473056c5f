#include "troupe/agents/turns/delegation.hpp"

#include "troupe/agents/turns/fence.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

// ADK recognises the end of a task by this result.
constexpr std::string_view finished = "Task completed.";
constexpr const char* wrapped_name = "result";

json object_of(const char* name, json schema) {
  auto properties = json::object();
  properties[name] = std::move(schema);
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", json::array({name})}};
}

bool describes_object(const json& schema) {
  return schema.is_object() && schema.value("type", json()) == "object";
}

// Definitions stay at the root of the schema, where references look for them.
json wrapped(json schema) {
  auto moved = json::object();
  for (const auto* name : {"$defs", "definitions"})
    if (schema.is_object() && schema.contains(name)) {
      moved[name] = std::move(schema[name]);
      schema.erase(name);
    }
  auto made = object_of(wrapped_name, std::move(schema));
  made.update(moved);
  return made;
}

// Returns true if the arguments of `finish_task` are the output itself.
bool is_object_output(const llm_options& options) {
  return !options.output_schema
         || describes_object(options.output_schema->text());
}

json finish_parameters(const llm_options& options) {
  if (!options.output_schema)
    return object_of(
      wrapped_name,
      {{"type", "string"}, {"description", "A short report of the result."}});
  const auto& schema = options.output_schema->text();
  return is_object_output(options) ? schema : wrapped(schema);
}

const function_response* finish_in(const event& said) {
  for (const auto& element : said.content.parts)
    if (const auto* answer = element.response();
        answer != nullptr && answer->name == finish_task_name) {
      const auto& told = answer->response.data();
      if (told.is_object() && told.value("result", json()) == finished)
        return answer;
    }
  return nullptr;
}

// An unanswered call of a task.
struct task_call {
  const function_call* call;
  const event* made;
  std::string scope; // Of the event that made it.
};

std::vector<task_call> unanswered(const event_slice& events,
                                  std::size_t first,
                                  const std::vector<std::string>& tasks) {
  std::vector<task_call> open;
  for (auto index = first; index < events.size(); ++index) {
    const auto& said = *events[index];
    for (const auto& element : said.content.parts) {
      if (const auto* answer = element.response())
        std::erase_if(open, [answer](const task_call& each) {
          return each.call->id == answer->id;
        });
      const auto* call = element.call();
      if (call != nullptr && !call->id.empty() && said.author != "user"
          && std::ranges::find(tasks, call->name) != tasks.end())
        open.push_back({call, &said, scope_of(said)});
    }
  }
  return open;
}

bool is_answered(const event_slice& events, std::string_view call_id) {
  for (auto index = events.size(); index > 0; --index)
    for (const auto& element : events[index - 1]->content.parts)
      if (const auto* answer = element.response();
          answer != nullptr && answer->id == call_id)
        return true;
  return false;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char next) {
    return next >= '0' && next <= '9';
  });
}

// Workflows of ADK number the runs of their nodes, `NAME@1`; these branches are
// no calls.
std::string_view call_of_segment(std::string_view segment) noexcept {
  const auto at = segment.find('@');
  if (at == std::string_view::npos || is_number(segment.substr(at + 1)))
    return {};
  return segment.substr(at + 1);
}

// Returns true if `branch` is below `viewer`, and a call is between them.
bool is_below_call(std::string_view branch, std::string_view viewer) {
  if (branch.find('@') == std::string_view::npos)
    return false;
  if (!viewer.empty()) {
    if (!branch.starts_with(viewer) || branch.size() == viewer.size()
        || branch[viewer.size()] != '.')
      return false;
    branch.remove_prefix(viewer.size() + 1);
  }
  for (;;) {
    const auto end = branch.find('.');
    if (!call_of_segment(branch.substr(0, end)).empty())
      return true;
    if (end == std::string_view::npos)
      return false;
    branch.remove_prefix(end + 1);
  }
}

} // namespace

// -- descriptions -------------------------------------------------------------

agent_mode mode_of(const agent& which) noexcept {
  const auto* options = std::get_if<llm_options>(&which.kind());
  return options == nullptr ? agent_mode::chat : options->mode;
}

bool is_delegated(const agent& which) noexcept {
  return mode_of(which) != agent_mode::chat;
}

std::vector<std::string> task_names_in(const std::vector<agent>& agents) {
  std::vector<std::string> names;
  for (const auto& each : agents) {
    if (mode_of(each) == agent_mode::task)
      names.push_back(each.name());
    if (each.task_names())
      names.insert(
        names.end(), each.task_names()->begin(), each.task_names()->end());
  }
  return names;
}

json agent_parameters(const agent& which) {
  if (const auto* options = std::get_if<llm_options>(&which.kind());
      options != nullptr && options->input_schema)
    return options->input_schema->text();
  if (!std::holds_alternative<llm_options>(which.kind())
      && !which.sub_agents().empty())
    return agent_parameters(which.sub_agents().front());
  return object_of("request", {{"type", "string"}});
}

tool delegation_tool(const agent& which) {
  tool_options made;
  made.name = which.name();
  made.description = which.description();
  made.parameters = agent_parameters(which);
  if (mode_of(which) == agent_mode::single_turn) {
    made.as_agent = std::make_shared<const agent>(which);
    made.runs_in_session = true;
    return tool(std::move(made));
  }
  if (!made.description.empty())
    made.description += '\n';
  made.description += "This tool hands a task to another agent. Call it alone, "
                      "without other calls beside it.";
  // The parent runs the agent and answers the call, when the turn's other calls
  // have ended.
  made.long_running = true;
  made.run = [](const json&, tool_context&) -> json { return nullptr; };
  return tool(std::move(made));
}

tool finish_task_tool(const llm_options& options) {
  tool_options made;
  made.name = std::string(finish_task_name);
  made.description = options.output_schema
                       ? "Ends the task, with its result as arguments."
                       : "Ends the task.";
  made.parameters = finish_parameters(options);
  made.run = [key = options.output_key, is_object = is_object_output(options)](
               const json& args, tool_context& context) -> json {
    if (!key.empty())
      context.state().set(key, is_object ? args : args.at(wrapped_name));
    return finished;
  };
  return tool(std::move(made));
}

std::string finish_task_hint() {
  return fmt::format(
    "You work on a task that another agent has given you. Use your tools "
    "until every part of it is done. If the task is not clear, ask the user "
    "first. When all is done, call `{}` alone, and write nothing besides the "
    "call. Do not call it earlier.",
    finish_task_name);
}

// -- events of delegated agents -----------------------------------------------

std::string delegation_branch(const std::string& above,
                              const std::string& name,
                              const std::string& call_id) {
  return above.empty() ? fmt::format("{}@{}", name, call_id)
                       : fmt::format("{}.{}@{}", above, name, call_id);
}

std::string_view call_of_branch(std::string_view branch) noexcept {
  const auto last = branch.rfind('.');
  return call_of_segment(
    last == std::string_view::npos ? branch : branch.substr(last + 1));
}

bool is_isolated(const event& said, std::string_view viewer) {
  const auto call = call_of_branch(viewer);
  if (call.empty())
    return !scope_of(said).empty() || is_below_call(said.branch, viewer);
  return said.branch != viewer
         && (said.author != "user" || scope_of(said) != call);
}

std::optional<content> request_of_call(const event_slice& events,
                                       std::string_view call_id,
                                       agent_mode mode) {
  const auto found = find_call(events, call_id);
  if (!found)
    return std::nullopt;
  content told("user",
               {part(without_markers(to_text(found->call->args.data())))});
  if (mode == agent_mode::single_turn)
    told.parts.emplace_back(
      "The user does not answer questions about this. Use only the information "
      "above, and give the complete answer.");
  return told;
}

bool ends_task(const event& said) {
  return finish_in(said) != nullptr;
}

std::optional<json> end_of_task(const event_slice& events,
                                std::string_view call_id) {
  for (auto index = events.size(); index > 0; --index) {
    const auto& said = *events[index - 1];
    if (scope_of(said) != call_id)
      continue;
    const auto* answer = finish_in(said);
    if (answer == nullptr)
      continue;
    const auto made = find_call(events, answer->id);
    if (!made)
      return std::nullopt;
    return made->call->args.data();
  }
  return std::nullopt;
}

json response_of_task(const llm_options& options, json args) {
  if (is_object_output(options))
    return args;
  auto response = json::object();
  response["output"] = args.value(wrapped_name, json());
  return response;
}

// -- open tasks ---------------------------------------------------------------

bool starts_user_turn(const event& said) {
  return said.author == "user" && !said.partial && !said.content.parts.empty()
         && !only_answers(said.content) && scope_of(said).empty();
}

std::size_t user_turn_start(const event_slice& events, std::uint64_t message) {
  for (auto index = events.size(); index > 0; --index)
    if ((message == 0 || events.number(index - 1) < message)
        && starts_user_turn(*events[index - 1]))
      return index - 1;
  return 0;
}

std::vector<function_call> open_tasks(const event_slice& events,
                                      std::string_view name,
                                      std::string_view branch,
                                      const std::vector<std::string>& tasks,
                                      std::uint64_t message) {
  std::vector<function_call> calls;
  for (const auto& each :
       unanswered(events, user_turn_start(events, message), tasks))
    if (each.made->author == name && each.made->branch == branch)
      calls.push_back(*each.call);
  return calls;
}

std::string open_task(const event_slice& events,
                      const std::vector<std::string>& tasks) {
  const auto open = unanswered(events, user_turn_start(events, 0), tasks);
  std::string scope;
  for (;;) {
    const auto next = std::ranges::find(open, scope, &task_call::scope);
    if (next == open.end() || end_of_task(events, next->call->id))
      return scope;
    scope = next->call->id;
  }
}

std::string scope_of_message(const content& message,
                             const event_slice& events,
                             const std::vector<std::string>& tasks) {
  for (const auto& element : message.parts)
    if (const auto* answer = element.response())
      if (const auto found = find_call(events, answer->id))
        return scope_of(*found->event);
  return open_task(events, tasks);
}

result<void> check_delegated(const content& message,
                             const event_slice& events,
                             const std::vector<std::string>& tasks) {
  for (const auto& element : message.parts) {
    const auto* answer = element.response();
    const auto found = answer != nullptr ? find_call(events, answer->id)
                                         : std::optional<found_call>();
    if (!found)
      continue;
    std::string_view branch = found->event->branch;
    while (!branch.empty()) {
      const auto end = branch.find('.');
      const auto segment = branch.substr(0, end);
      branch = end == std::string_view::npos ? "" : branch.substr(end + 1);
      const auto id = call_of_segment(segment);
      const auto name = segment.substr(0, segment.find('@'));
      const auto made
        = id.empty() ? std::optional<found_call>() : find_call(events, id);
      if (!made || made->call->name != name)
        continue;
      const bool is_task = std::ranges::find(tasks, name) != tasks.end();
      if (!is_task || end_of_task(events, id) || is_answered(events, id))
        return error(errc::conflict,
                     fmt::format("call '{}' is of agent '{}', whose work has "
                                 "ended, so its answer comes too late; send a "
                                 "message instead",
                                 answer->id,
                                 name));
    }
  }
  return {};
}

std::string scope_of_number(const event_slice& events, std::uint64_t number) {
  if (number == 0 || events.empty() || number < events.first_number())
    return {};
  const auto found = events.from(number);
  return found.empty() || found.number(0) != number ? std::string()
                                                    : scope_of(*found[0]);
}

bool is_in_task(const event_slice& events,
                std::string scope,
                std::string_view call_id) {
  while (!scope.empty() && scope != call_id) {
    const auto found = find_call(events, scope);
    scope = found ? scope_of(*found->event) : std::string();
  }
  return !scope.empty();
}

std::string outermost_caller(const event_slice& events, std::string scope) {
  std::string author;
  while (!scope.empty()) {
    const auto found = find_call(events, scope);
    if (!found)
      return {};
    author = found->event->author;
    scope = scope_of(*found->event);
  }
  return author;
}

} // namespace troupe
