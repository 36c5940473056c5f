// An update by a lambda with captured objects inside the `co_await` expression.
// first error: put it into a variable first

#include "troupe/agents/agent.hpp"

#include <memory>

auto use() {
  return troupe::custom(
    "counter", [](troupe::invocation_context& context) -> troupe::agent_run {
      const auto step = std::make_shared<int>(2);
      co_await context.update(
        "count", [step](const std::optional<troupe::json>& now) {
          return troupe::json(now ? now->get<int>() + *step : *step);
        });
    });
}
