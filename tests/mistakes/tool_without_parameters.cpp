// A tool whose parameter struct does not list its fields.
// first error: does not list its fields: add 'static constexpr auto parameters

#include "troupe/agents/function_tool.hpp"

#include <string>

struct forecast_query {
  std::string city;
};

auto use() {
  return troupe::function_tool(
    {.name = "forecast"},
    [](const forecast_query& query) { return "Sun in " + query.city; });
}
