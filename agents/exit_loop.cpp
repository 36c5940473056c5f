#include "troupe/agents/agent.hpp"
#include "troupe/contexts/tool_context.hpp"

namespace troupe {

tool exit_loop() {
  return tool({.name = "exit_loop",
               .description
               = "Ends the loop. Call it when the work of the loop "
                 "is done, and only then.",
               .run = [](const json&, tool_context& context) {
                 context.actions().escalate = true;
                 context.actions().skip_summarization = true;
                 return json::object();
               }});
}

} // namespace troupe
