#include "troupe/agents/agent_tool.hpp"

#include <utility>

namespace troupe {

namespace {

json parameters_of(const agent& which) {
  if (const auto* options = std::get_if<llm_options>(&which.kind());
      options != nullptr && options->input_schema)
    return options->input_schema->text();
  if (!std::holds_alternative<llm_options>(which.kind())
      && !which.sub_agents().empty())
    return parameters_of(which.sub_agents().front());
  auto properties = json::object();
  properties["request"] = {{"type", "string"}};
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", json::array({"request"})}};
}

} // namespace

tool agent_tool(agent which, agent_tool_options options) {
  tool_options made;
  made.name = which.name();
  made.description = which.description();
  made.parameters = parameters_of(which);
  made.timeout = options.timeout;
  made.on_failure = options.on_failure;
  made.skip_summarization = options.skip_summarization;
  made.require_confirmation = options.require_confirmation;
  made.as_agent = std::make_shared<const agent>(std::move(which));
  return tool(std::move(made));
}

} // namespace troupe
