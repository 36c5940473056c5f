// A callback before the model that does not take the request.
// first error: a callback before a model is

#include "troupe/agents/agent.hpp"

void use(const troupe::model_ptr& model) {
  troupe::llm({.name = "writer",
               .model = model,
               .before_model = {[](troupe::callback_context& context) {
                 context.state().add("asked", 1);
               }}});
}
