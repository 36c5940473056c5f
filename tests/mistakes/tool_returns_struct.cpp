// A tool that returns a struct that nothing converts to JSON.
// first error: the result of a tool becomes JSON: return text, a number,

#include "troupe/agents/function_tool.hpp"

#include <string>
#include <tuple>

struct forecast_query {
  std::string city;

  static constexpr auto parameters
    = std::tuple(troupe::parameter("city", &forecast_query::city));
};

struct forecast {
  int degrees = 0;
};

auto use() {
  return troupe::function_tool(
    {.name = "forecast"}, [](const forecast_query&) { return forecast{21}; });
}
