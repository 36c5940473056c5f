#include "troupe/agents/llm_turn.hpp"

#include "troupe/agents/agent_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace troupe {

namespace {

using shared_content = std::shared_ptr<const content>;

shared_content part_of(const event_ptr& said) {
  return {said, &said->content}; // Shares the event: nothing is copied.
}

bool has_calls(const content& said) {
  return std::ranges::any_of(
    said.parts, [](const part& element) { return element.call() != nullptr; });
}

bool has_responses(const content& said) {
  return std::ranges::any_of(said.parts, [](const part& element) {
    return element.response() != nullptr;
  });
}

// What another agent did, told as user text.
shared_content retold(const event& said) {
  content told("user", {part("For context:")});
  for (const auto& element : said.content.parts) {
    if (element.thought)
      continue;
    if (const auto* words = element.text())
      told.parts.emplace_back(
        fmt::format("[{}] said: {}", said.author, *words));
    else if (const auto* call = element.call())
      told.parts.emplace_back(
        fmt::format("[{}] called tool `{}` with parameters: {}",
                    said.author,
                    call->name,
                    to_text(call->args.data())));
    else if (const auto* answer = element.response())
      told.parts.emplace_back(fmt::format("[{}] tool `{}` returned result: {}",
                                          said.author,
                                          answer->name,
                                          to_text(answer->response.data())));
    else
      told.parts.push_back(element);
  }
  return told.parts.size() > 1
           ? std::make_shared<const content>(std::move(told))
           : nullptr;
}

bool is_visible(const event& said, std::string_view branch) {
  return !said.partial && !said.content.parts.empty()
         && is_visible_on(said.branch, branch);
}

// Whether the event only hands over.
bool is_transfer(const event& said) {
  return std::ranges::all_of(said.content.parts, [](const part& element) {
    return (element.call() != nullptr
            && element.call()->name == transfer_tool_name)
           || (element.response() != nullptr
               && element.response()->name == transfer_tool_name);
  });
}

// The index at which the current turn starts: the latest event of the user or
// of another agent.
std::size_t turn_start(const event_slice& events,
                       std::string_view agent_name,
                       std::string_view branch) {
  for (auto index = events.size(); index > 0; --index)
    if (const auto& said = *events[index - 1]; is_visible(said, branch)
                                               && said.author != agent_name
                                               && !is_transfer(said))
      return index - 1;
  return 0;
}

// What a call left open comes to, because its run was cancelled or killed: a
// model refuses a history with a call that nobody has answered.
part closing(const function_call& open) {
  json answer{{"error", "the run ended before the tool had answered"}};
  return part(function_response{open.id, open.name, std::move(answer)});
}

// Moves each response behind the content that holds its call. Responses that
// answer nothing visible are left out, for the same reason.
std::vector<shared_content> pair_up(std::vector<shared_content> contents) {
  const bool is_plain = std::ranges::none_of(contents, [](const auto& said) {
    return has_responses(*said) || has_calls(*said);
  });
  if (is_plain)
    return contents;
  std::vector<shared_content> paired;
  for (std::size_t index = 0; index < contents.size(); ++index) {
    const auto& said = contents[index];
    if (has_responses(*said)) {
      // What was said beside a response stays where it was said.
      content words(said->role, {});
      std::ranges::copy_if(
        said->parts, std::back_inserter(words.parts), [](const part& element) {
          return element.response() == nullptr;
        });
      if (!words.parts.empty())
        paired.push_back(std::make_shared<const content>(std::move(words)));
      continue;
    }
    paired.push_back(said);
    if (!has_calls(*said))
      continue;
    content answers("user", {});
    for (const auto& element : said->parts) {
      const auto* call = element.call();
      if (call == nullptr)
        continue;
      const part* answer = nullptr;
      for (auto later = index + 1; answer == nullptr && later < contents.size();
           ++later)
        for (const auto& candidate : contents[later]->parts)
          if (candidate.response() != nullptr
              && candidate.response()->id == call->id) {
            answer = &candidate;
            break;
          }
      answers.parts.push_back(answer != nullptr ? *answer : closing(*call));
    }
    paired.push_back(std::make_shared<const content>(std::move(answers)));
  }
  return paired;
}

json as_response(const result<json>& outcome) {
  if (!outcome)
    return {{"error", outcome.error().message()}};
  return outcome->is_object() ? *outcome : json{{"result", *outcome}};
}

// Behind the last responses of tools, or before what the user said last.
void insert_instruction(std::string text,
                        std::vector<shared_content>& contents) {
  auto place = contents.end();
  while (place != contents.begin() && (*std::prev(place))->role == "user"
         && !has_responses(**std::prev(place)))
    --place;
  contents.insert(
    place,
    std::make_shared<const content>(content("user", {part(std::move(text))})));
}

// What an agent's final text comes to: itself, or the value that it says.
// Nothing for a blank text where a value is expected.
result<std::optional<json>> read_output(const llm_options& options,
                                        std::string text) {
  if (!options.output_schema)
    return std::optional<json>(std::move(text));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return std::optional<json>();
  const auto misfit = [&options](std::string_view why) {
    return error(errc::model_failed,
                 fmt::format("the answer of agent '{}' does not fit its "
                             "output_schema: {}",
                             options.name,
                             why));
  };
  auto parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded())
    return misfit("it is not JSON");
  if (auto fits = options.output_schema->check(parsed); !fits)
    return misfit(fits.error().message());
  return std::optional<json>(std::move(parsed));
}

} // namespace

bool is_visible_on(std::string_view branch, std::string_view viewer) noexcept {
  return branch.empty() || viewer.empty() || branch == viewer
         || (viewer.starts_with(branch) && viewer[branch.size()] == '.');
}

std::vector<std::shared_ptr<const content>>
visible_contents(const event_slice& events,
                 std::string_view agent_name,
                 std::string_view branch,
                 include_contents which) {
  std::vector<shared_content> contents;
  auto index = which == include_contents::none
                 ? turn_start(events, agent_name, branch)
                 : 0;
  for (; index < events.size(); ++index) {
    const auto& said = events[index];
    if (!is_visible(*said, branch))
      continue;
    if (said->author == agent_name || said->author == "user")
      contents.push_back(part_of(said));
    else if (auto told = retold(*said))
      contents.push_back(std::move(told));
  }
  return pair_up(std::move(contents));
}

result<std::string> resolve_instruction(const instruction& source,
                                        const readonly_context& context) {
  if (const auto* text = std::get_if<std::string>(&source.source()))
    return inject_session_state(*text, context);
  const auto& provider = std::get<instruction_provider>(source.source());
  try {
    return provider(context);
  } catch (const error& failure) {
    return failure;
  } catch (const std::exception& failure) {
    return error(errc::callback_failed,
                 fmt::format("instruction provider of agent '{}': {}",
                             context.agent_name(),
                             failure.what()));
  } catch (...) {
    return error(errc::callback_failed,
                 fmt::format("instruction provider of agent '{}' threw "
                             "something that is no std::exception",
                             context.agent_name()));
  }
}

result<std::string>
assemble_instruction(const llm_options* root,
                     const llm_options& options,
                     std::string_view hint,
                     const readonly_context& context,
                     std::vector<std::shared_ptr<const content>>& contents) {
  std::string whole;
  const auto add = [&whole](std::string_view part) {
    if (part.empty())
      return;
    if (!whole.empty())
      whole += "\n\n";
    whole += part;
  };
  if (root != nullptr) {
    auto global = resolve_instruction(root->global_instruction, context);
    if (!global)
      return global;
    add(*global);
  }
  add(options.static_instruction);
  auto own = resolve_instruction(options.instruction, context);
  if (!own)
    return own;
  if (options.static_instruction.empty())
    add(*own);
  else if (!own->empty())
    insert_instruction(std::move(*own), contents);
  add(hint);
  return whole;
}

result<event> make_response_event(const llm_options& options,
                                  model_response response,
                                  environment& environment) {
  event said(std::move(response.said));
  said.partial = response.partial;
  said.extra = std::move(response.extra);
  if (said.content.role.empty())
    said.content.role = "model";
  if (said.partial)
    return said;
  for (auto& element : said.content.parts)
    if (auto* call = std::get_if<function_call>(&element.body);
        call != nullptr && call->id.empty())
      call->id = "adk-" + environment.new_id();
  const bool has_text
    = std::ranges::any_of(said.content.parts, [](const part& element) {
        return element.text() != nullptr && !element.thought;
      });
  if (!has_text || !is_final(said))
    return said;
  auto output = read_output(options, said.text());
  if (!output)
    return output.error();
  // The key was checked when the agent was made.
  if (!options.output_key.empty() && *output)
    if (auto recorded = said.actions.state_delta.record(
          options.output_key, operation_kind::set, std::move(**output));
        !recorded)
      return recorded.error();
  return said;
}

event make_tool_event(std::vector<tool_call> answered) {
  event said;
  said.content.role = "user";
  for (auto& done : answered) {
    said.content.parts.emplace_back(function_response{
      done.call.id, done.call.name, as_response(done.outcome)});
    said.actions.state_delta.merge(done.recorded);
    said.actions.state_delta.merge(done.actions.state_delta);
    said.actions.escalate = said.actions.escalate || done.actions.escalate;
    said.actions.skip_summarization
      = said.actions.skip_summarization || done.actions.skip_summarization;
    if (!done.actions.transfer_to_agent.empty())
      said.actions.transfer_to_agent
        = std::move(done.actions.transfer_to_agent);
    for (auto& [name, version] : done.actions.artifact_delta)
      said.actions.artifact_delta[name] = version;
    if (!done.actions.extra.is_null()) {
      auto joined = said.actions.extra.is_null() ? json::object()
                                                 : said.actions.extra.data();
      joined.update(done.actions.extra.data(), true);
      said.actions.extra = std::move(joined);
    }
  }
  return said;
}

} // namespace troupe
