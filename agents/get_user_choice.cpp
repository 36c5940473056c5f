#include "troupe/agents/standard_tools.hpp"

namespace troupe {

tool get_user_choice() {
  json properties = json::object();
  properties["options"]
    = {{"type", "array"},
       {"items", {{"type", "string"}}},
       {"description", "The texts that the user can choose from."}};
  json parameters{{"type", "object"},
                  {"required", json::array({"options"})},
                  {"additionalProperties", false}};
  parameters["properties"] = std::move(properties);
  return tool({.name = "get_user_choice",
               .description = "Shows options to the user, and returns the one "
                              "that the user chooses.",
               .parameters = std::move(parameters),
               .run = [](const json&, tool_context&) -> json {
                 // The run pauses for the user.
                 return nullptr;
               },
               .long_running = true});
}

} // namespace troupe
