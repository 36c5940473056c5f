// State as a map, as in Python.
// first error: a state has no \[\]: read with get<T>\(key\)

#include "troupe/agents/agent.hpp"

auto use() {
  return troupe::custom(
    "counter", [](troupe::invocation_context& context) -> troupe::agent_run {
      context.state()["count"] = 1;
      co_return;
    });
}
