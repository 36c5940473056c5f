#include "troupe/agents/standard_tools.hpp"
#include "troupe/agents/turns/shown_memory.hpp"

#include <string>
#include <utility>

namespace troupe {

namespace {

json query_schema() {
  json properties = json::object();
  properties["query"]
    = {{"type", "string"},
       {"description",
        "Words to search for, as they may stand in earlier conversations."}};
  json parameters{{"type", "object"},
                  {"required", json::array({"query"})},
                  {"additionalProperties", false}};
  parameters["properties"] = std::move(properties);
  return parameters;
}

json search_for_model(const json& args, tool_context& context) {
  auto memories = json::array();
  const auto found = shown_memories(
    context.search_memory(args.at("query").get<std::string>()).value());
  for (const auto& each : found)
    memories.push_back(to_json(each));
  auto told = json::object();
  told["memories"] = std::move(memories);
  return told;
}

void tell_of_memory(readonly_context&, model_request& request) {
  auto& instruction = request.system_instruction;
  if (!instruction.empty())
    instruction += "\n\n";
  instruction += "You remember earlier conversations with this user. If an "
                 "answer may depend on them, call load_memory with a query "
                 "first; it finds what shares a word with the query.";
}

} // namespace

tool load_memory() {
  return tool({.name = "load_memory",
               .description = "Searches earlier conversations with the user.",
               .parameters = query_schema(),
               .run = search_for_model,
               .prepare = tell_of_memory});
}

} // namespace troupe
