// A tool that takes its context by value.
// first error: a tool has at most two parameters: its parameter struct and

#include "troupe/agents/function_tool.hpp"

#include <string>
#include <tuple>

struct forecast_query {
  std::string city;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("city", &forecast_query::city));
};

auto use() {
  return troupe::function_tool(
    {.name = "forecast"},
    [](const forecast_query& query, const troupe::tool_context&) {
      return "Sun in " + query.city;
    });
}
