#include "troupe/agents/agent_tool.hpp"

#include "troupe/agents/turns/delegation.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

tool agent_tool(agent which, agent_tool_options options) {
  auto tasks = task_names_in({which});
  if (!tasks.empty())
    throw error(
      errc::invalid_argument,
      fmt::format("agent '{}' cannot be a tool: agent '{}' is in mode "
                  "task and may ask the user, whom an agent that is "
                  "a tool cannot reach; put it below an LLM agent, "
                  "or give it mode single_turn",
                  which.name(),
                  tasks.front()));
  tool_options made;
  made.name = which.name();
  made.description = which.description();
  made.parameters = agent_parameters(which);
  made.timeout = options.timeout;
  made.on_failure = options.on_failure;
  made.skip_summarization = options.skip_summarization;
  made.require_confirmation = options.require_confirmation;
  made.as_agent = std::make_shared<const agent>(std::move(which));
  return tool(std::move(made));
}

} // namespace troupe
