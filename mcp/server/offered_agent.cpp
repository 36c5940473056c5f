#include "troupe/mcp/server/offered_agent.hpp"

#include "troupe/agents/agent_tool.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>

namespace troupe::mcp {

namespace {

// The schema of the first LLM agent, as for an agent that is a tool of another
// one.
std::optional<json_schema> input_schema_of(const agent& root) {
  if (const auto* options = std::get_if<llm_options>(&root.kind()))
    return options->input_schema;
  if (root.sub_agents().empty())
    return std::nullopt;
  return input_schema_of(root.sub_agents().front());
}

// Versions up to 2025-11-25 know structured content that is an object, and no
// other one.
std::optional<json_schema> output_schema_of(const agent& root) {
  const auto* options = std::get_if<llm_options>(&root.kind());
  if (options == nullptr || !options->output_schema)
    return std::nullopt;
  const auto& text = options->output_schema->text();
  const auto type = text.find("type");
  return type != text.end() && *type == "object" ? options->output_schema
                                                 : std::nullopt;
}

json words_schema() {
  json properties = json::object();
  properties["request"]
    = {{"type", "string"}, {"description", "The message to the agent."}};
  properties["session"]
    = {{"type", "string"},
       {"description",
        "Name of a conversation, chosen by the caller. Calls with the same "
        "name continue it. Without a name each call is a new conversation."}};
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", json::array({"request"})},
          {"additionalProperties", false}};
}

} // namespace

offered_agent::offered_agent(agent root)
  : root_(std::move(root)),
    input_(input_schema_of(root_)),
    output_(output_schema_of(root_)),
    arguments_(input_ ? *input_ : json_schema(words_schema())) {
  entry_ = json::object();
  entry_["name"] = root_.name();
  entry_["description"] = root_.description().empty()
                            ? fmt::format("Runs the agent '{}'.", root_.name())
                            : root_.description();
  entry_["inputSchema"] = arguments_->text();
  if (output_)
    entry_["outputSchema"] = output_->text();
}

result<agent_request> offered_agent::read(const json& args) const {
  if (auto fits = arguments_->check(args); !fits)
    return fits.error();
  if (input_)
    return agent_request{to_text(args), {}};
  return agent_request{args.at("request").get<std::string>(),
                       args.value("session", std::string())};
}

} // namespace troupe::mcp
