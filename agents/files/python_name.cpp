#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

namespace troupe {

bool is_name_of(const adk_name& known,
                std::string_view package,
                std::string_view written) {
  if (written == known.name)
    return true;
  return !known.module.empty()
         && (written == fmt::format("{}.{}", package, known.name)
             || written
                  == fmt::format(
                    "{}.{}.{}", package, known.module, known.name));
}

bool is_python_name(std::string_view name) {
  return name.find('.') != std::string_view::npos;
}

std::string_view way_without_python(python_code kind) {
  switch (kind) {
  case python_code::agent:
    return "write the agent in this file, or name its file with config_path";
  case python_code::callback:
    return "name a callback of the program (C++)";
  case python_code::schema:
    return "write the JSON Schema in this file, such as {type: object, "
           "properties: {…}}";
  case python_code::tool:
    return "make a program a tool (command: [PROGRAM, …]), call an HTTP API "
           "(OpenAPIToolset), use an MCP server (McpToolset), name a tool of "
           "the program (C++), or make an agent a tool (AgentTool)";
  }
  return "";
}

error fail_on_python(const file_place& at,
                     std::string_view name,
                     std::string_view way) {
  return fail_at(
    at,
    fmt::format(
      "'{}' names Python code, which troupe cannot run; {}", name, way));
}

error fail_on_python(const file_place& at,
                     std::string_view name,
                     python_code kind) {
  return fail_on_python(at, name, way_without_python(kind));
}

} // namespace troupe
