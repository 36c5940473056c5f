// A callback of an agent that answers with text in place of a content.
// first error: a callback around an agent or a run is

#include "troupe/agents/agent.hpp"

#include <string>

void use(const troupe::model_ptr& model) {
  troupe::llm({.name = "writer",
               .model = model,
               .before_agent = {[](troupe::callback_context&) {
                 return std::string("No.");
               }}});
}
