// An update through the recorded state, which cannot wait.
// first error: an update may have to try again: an agent's body writes co_await
// context.update

#include "troupe/agents/agent.hpp"

auto use() {
  return troupe::custom(
    "counter", [](troupe::invocation_context& context) -> troupe::agent_run {
      context.state().update("count", [](auto) { return troupe::json(1); });
      co_return;
    });
}
