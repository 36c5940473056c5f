// A rule for confirmations that takes the parameter struct.
// first error: a function that decides about a confirmation is

#include "troupe/agents/function_tool.hpp"

#include <tuple>

struct refund {
  int euros = 0;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("euros", &refund::euros));
};

auto use() {
  return troupe::function_tool(
    {.name = "refund",
     .require_confirmation
     = [](const refund& wanted) { return wanted.euros > 50; }},
    [](const refund&) { return "done"; });
}
