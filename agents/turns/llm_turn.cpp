#include "troupe/agents/turns/llm_turn.hpp"

#include "troupe/agents/turns/fence.hpp"
#include "troupe/agents/turns/open_turn.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/instruction_template.hpp"
#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

namespace troupe {

namespace {

json as_response(const result<json>& outcome) {
  if (!outcome)
    return {{"error", outcome.error().message()}};
  return outcome->is_object() ? *outcome : json{{"result", *outcome}};
}

function_response response_to(tool_call& done) {
  function_response made(
    done.call.id, done.call.name, as_response(done.outcome));
  if (!done.attached.empty()) {
    auto extra = json::object();
    extra["parts"]
      = std::move(to_json(content({}, std::move(done.attached)))["parts"]);
    made.extra = std::move(extra);
  }
  return made;
}

// Inserts the instruction after the newest tool responses or the newest content
// of a model, whichever is later.
void insert_instruction(std::string text,
                        std::vector<std::shared_ptr<const content>>& contents) {
  auto place = contents.end();
  while (place != contents.begin() && (*std::prev(place))->role == "user"
         && !has_responses(**std::prev(place)))
    --place;
  contents.insert(
    place,
    std::make_shared<const content>(content("user", {part(std::move(text))})));
}

// The output of an agent's final text: the text itself, or its JSON value if
// there is a schema. Unset if there is a schema and the text is blank.
result<std::optional<json>> read_output(const llm_options& options,
                                        std::string text) {
  if (!options.output_schema)
    return std::optional<json>(std::move(text));
  if (text.find_first_not_of(wire_white_space) == std::string::npos)
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

// Marks an answer without content as a failure of the model; the agent
// continues.
void say_nothing(event& said) {
  auto fields = said.extra.is_null() ? json::object() : said.extra.data();
  fields["errorCode"] = "MODEL_RETURNED_NO_CONTENT";
  fields["errorMessage"] = "the model returned no content";
  said.extra = std::move(fields);
}

} // namespace

task<std::string> resolve_instruction(const instruction& source,
                                      const readonly_context& context) {
  std::string made;
  if (const auto* text = std::get_if<std::string>(&source.source())) {
    if (text->find('{') == std::string::npos)
      co_return *text;
    auto filled
      = co_await inject_session_state(*text, context, source.braces());
    co_return std::move(filled).value();
  }
  std::optional<error> failure;
  const auto whose
    = fmt::format("instruction provider of agent '{}'", context.agent_name());
  try {
    made = co_await std::get<instruction_provider>(source.source())(context);
  } catch (const error&) {
    throw;
  } catch (const std::exception& thrown) {
    failure = error(errc::callback_failed,
                    fmt::format("{}: {}", whose, thrown.what()));
  } catch (...) {
    failure = error(
      errc::callback_failed,
      fmt::format("{} threw an exception that is not a std::exception", whose));
  }
  if (failure)
    throw *failure;
  co_return made;
}

std::string identity_of(const llm_options& options) {
  if (options.mode == agent_mode::single_turn)
    return {};
  auto told = fmt::format("You are an agent with the internal name \"{}\".",
                          options.name);
  if (!options.description.empty())
    told += fmt::format(" You are described as \"{}\".", options.description);
  return told;
}

std::string
assemble_instruction(const llm_options& options,
                     const std::string& global,
                     std::string own,
                     const std::vector<std::string>& hints,
                     std::vector<std::shared_ptr<const content>>& contents) {
  const auto& fixed = options.static_instruction;
  std::string whole;
  const auto add = [&whole](std::string_view part) {
    if (part.empty())
      return;
    if (!whole.empty())
      whole += "\n\n";
    whole += part;
  };
  add(global);
  add(fixed);
  if (fixed.empty())
    add(own);
  else if (!own.empty())
    insert_instruction(labelled_instruction(own), contents);
  add(identity_of(options));
  for (const auto& each : hints)
    add(each);
  std::vector<std::shared_ptr<const content>> first;
  first.reserve(options.static_contents.size());
  for (const auto& each : options.static_contents)
    first.push_back(std::make_shared<const content>(each));
  contents.insert(contents.begin(), first.begin(), first.end());
  return whole;
}

result<event> make_response_event(const llm_options& options,
                                  model_response response,
                                  environment& environment) {
  event said(std::move(response.content));
  said.partial = response.partial;
  said.extra = std::move(response.extra);
  if (said.content.role.empty())
    said.content.role = "model";
  if (said.partial)
    return said;
  if (said.content.parts.empty() && said.field("errorCode").empty())
    say_nothing(said);
  for (auto& element : said.content.parts)
    if (auto* call = std::get_if<function_call>(&element.body)) {
      call->id = "adk-" + environment.new_id();
      if (call->args.is_null())
        call->args = json::object();
    }
  const bool has_text
    = std::ranges::any_of(said.content.parts, [](const part& element) {
        return element.text() != nullptr && !element.thought;
      });
  // The words of a task go to the user; its output is that of `finish_task`.
  if (!has_text || !is_final(said) || options.mode == agent_mode::task)
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
    if (!is_pending(done))
      said.content.parts.emplace_back(response_to(done));
    said.actions.state_delta.merge(done.recorded);
    said.actions.state_delta.merge(done.actions.state_delta);
    said.actions.escalate = said.actions.escalate || done.actions.escalate;
    said.actions.skip_summarization
      = said.actions.skip_summarization || done.actions.skip_summarization;
    if (!done.actions.transfer_to_agent.empty())
      said.actions.transfer_to_agent
        = std::move(done.actions.transfer_to_agent);
    for (const auto& [name, version] : done.actions.artifact_delta) {
      auto& newest = said.actions.artifact_delta[name];
      newest = std::max(newest, version);
    }
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
