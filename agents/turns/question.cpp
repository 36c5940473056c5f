#include "troupe/agents/turns/question.hpp"

#include "troupe/agents/json_schema.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>
#include <vector>

namespace troupe {

namespace {

// Returns a field of an object, or null.
json member_in(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? json() : *found;
}

// Returns the value that stands in the only field of a response.
std::optional<json> only_field(const json& response) {
  if (!response.is_object() || response.size() != 1)
    return std::nullopt;
  if (response.contains("result"))
    return response.at("result");
  // Some clients put every answer there, as text.
  if (response.contains("response") && response.at("response").is_string())
    return response.at("response");
  return std::nullopt;
}

} // namespace

std::string question_id(std::string_view visit, std::uint64_t number) {
  return fmt::format("{}/question-{}", visit, number);
}

function_call
make_question(std::string id, std::string message, json schema, json payload) {
  auto args = json::object();
  args["interruptId"] = id;
  args["message"] = std::move(message);
  args["payload"] = std::move(payload);
  args["response_schema"] = std::move(schema);
  return {std::move(id), std::string(request_input_name), std::move(args)};
}

result<json> read_answer(const json& args, const json& response) {
  const auto field = only_field(response);
  const auto& said = field ? *field : response;
  const auto text = member_in(args, "response_schema");
  if (text.is_null())
    return said;
  std::optional<json_schema> schema;
  try {
    schema.emplace(text);
  } catch (const error& failure) {
    return error(errc::invalid_argument,
                 fmt::format("the question's schema is {}", failure.message()));
  }
  const auto fits = schema->check(said);
  if (fits)
    return said;
  if (said.is_string())
    if (auto parsed = parse_json(said.get_ref<const std::string&>());
        parsed && schema->check(*parsed))
      return parsed;
  if (field && schema->check(response))
    return response;
  return fits.error();
}

const function_response*
find_response(const event_slice& events,
              std::string_view id,
              std::size_t from,
              const std::optional<branch_agent>& also) {
  std::set<std::string> withdrawn; // Messages whose runs have failed.
  for (auto index = events.size(); index > from; --index) {
    const auto& said = *events[index - 1];
    if (auto message = released_in(said); !message.empty())
      withdrawn.insert(std::move(message));
    const bool is_users = said.author == "user" && !withdrawn.contains(said.id);
    const bool is_also
      = also && said.author == also->name && said.branch == also->branch;
    if (!is_users && !is_also)
      continue;
    for (const auto& element : said.content.parts)
      if (const auto* answer = element.response();
          answer != nullptr && answer->id == id)
        return answer;
  }
  return nullptr;
}

result<std::optional<json>> find_answer(const event_slice& events,
                                        const function_call& asked) {
  const auto found = find_call(events, asked.id);
  if (!found || found->event->id != asked.id)
    return std::optional<json>();
  if (found->call->name != asked.name || found->call->args != asked.args)
    return error(errc::conflict,
                 fmt::format("the function asks \"{}\", but at this place it "
                             "asked \"{}\" before; ask the same questions in "
                             "the same order when the function starts again, "
                             "or start a new run",
                             to_text(asked.args.data()),
                             to_text(found->call->args.data())));
  const auto* response = find_response(events, asked.id);
  if (response == nullptr)
    return std::optional<json>();
  // An event that was appended without a run was not checked.
  auto answer = read_answer(asked.args.data(), response->response.data());
  if (!answer)
    return std::optional<json>();
  return std::optional(std::move(*answer));
}

} // namespace troupe
