// The body of a custom agent as a plain function.
// first error: the body of a custom agent is a coroutine

#include "troupe/agents/agent.hpp"

auto use() {
  return troupe::custom("counter", [](troupe::invocation_context& context) {
    context.state().add("count", 1);
  });
}
