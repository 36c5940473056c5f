// A tool that takes a plain string.
// first error: the first parameter of a tool is a struct that lists its fields

#include "troupe/agents/function_tool.hpp"

#include <string>

auto use() {
  return troupe::function_tool(
    {.name = "forecast"},
    [](const std::string& city) { return "Sun in " + city; });
}
