#include "troupe/agents/files/vendor_tool_reader.hpp"

#include "troupe/agents/files/command_reader.hpp"
#include "troupe/agents/files/python_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>

namespace troupe {

namespace {

struct vendor_name {
  adk_name written; // In `google.adk.tools`.
  std::string_view tool;
};

// docs/models.md lists the tools.
constexpr std::array vendor_names{
  vendor_name{{"google_search", "google_search_tool"}, "google_search"},
  vendor_name{{"GoogleSearchTool", "google_search_tool"}, "google_search"},
  vendor_name{{"url_context", "url_context_tool"}, "url_context"},
  vendor_name{{"UrlContextTool", "url_context_tool"}, "url_context"},
  vendor_name{{"google_maps_grounding", "google_maps_grounding_tool"},
              "google_maps"},
  vendor_name{{"GoogleMapsGroundingTool", "google_maps_grounding_tool"},
              "google_maps"},
  vendor_name{{"enterprise_web_search", "enterprise_search_tool"},
              "enterprise_web_search"},
  vendor_name{{"EnterpriseWebSearchTool", "enterprise_search_tool"},
              "enterprise_web_search"},
  vendor_name{{"google_maps", ""}, "google_maps"},
  vendor_name{{"code_execution", ""}, "code_execution"},
  vendor_name{{"web_search", ""}, "web_search"},
  vendor_name{{"web_fetch", ""}, "web_fetch"},
};

constexpr std::string_view executors_package = "google.adk.code_executors";
constexpr adk_name own_executor{"BuiltInCodeExecutor",
                                "built_in_code_executor"};

std::string_view written_name(const yaml_node& item) {
  if (item.kind == yaml_node::form::scalar)
    return item.text;
  const auto* name
    = item.kind == yaml_node::form::map ? item.find("name") : nullptr;
  return name != nullptr && name->value->kind == yaml_node::form::scalar
           ? std::string_view(name->value->text)
           : std::string_view();
}

// Takes settings of ADK's GoogleSearchTool out. They change the agent, not the
// search.
result<void> take_adk_settings(const field_reader& args,
                               std::string_view tool,
                               json& settings) {
  if (tool != "google_search")
    return {};
  if (const auto bypass = settings.value("bypass_multi_tools_limit", json());
      !bypass.is_null() && bypass != false)
    return fail_at(args.at("bypass_multi_tools_limit"),
                   "'bypass_multi_tools_limit' cannot be used: give "
                   "google_search to an agent of its own, and make that agent "
                   "a tool (AgentTool)");
  if (settings.contains("model"))
    return fail_at(args.at("model"),
                   "'model' cannot be set for the search alone; set the "
                   "'model' of the agent");
  settings.erase("bypass_multi_tools_limit");
  return {};
}

result<vendor_tool> read_one(const field_reader& item) {
  vendor_tool made{std::string(vendor_tool_of(written_name(item.node())))};
  for (const auto& [field, line, column, unused, is_quoted] :
       item.node().fields)
    if (field == "require_confirmation")
      return fail_at({&item.file(), line},
                     fmt::format("'{}' cannot be confirmed: the model's vendor "
                                 "runs it without asking",
                                 made.name));
    else if (field != "name" && field != "args")
      return fail_at({&item.file(), line},
                     fmt::format("unknown field '{}'; a tool that a vendor "
                                 "runs has name and args",
                                 field));
  if (item.node().kind != yaml_node::form::map)
    return made;
  auto settings = item.object("args");
  if (!settings)
    return settings.error();
  if (!*settings)
    return made;
  if (auto taken = take_adk_settings(
        field_reader(item.file(), *item.find("args")), made.name, **settings);
      !taken)
    return taken.error();
  if (!(*settings)->empty())
    made.settings = std::move(**settings);
  return made;
}

result<void> read_executor(const field_reader& fields,
                           std::vector<placed_vendor_tool>& tools) {
  constexpr const char* field = "code_executor";
  const auto* node = fields.find(field);
  if (node == nullptr)
    return {};
  if (!is_name_of(own_executor, executors_package, written_name(*node)))
    return fail_at(fields.at(field),
                   "'code_executor' cannot be used: troupe does not run code "
                   "of models; use BuiltInCodeExecutor, with which the model's "
                   "vendor runs it, or give the agent a tool for it");
  if (node->fields.size() > 1)
    return fail_at(fields.at(field),
                   "BuiltInCodeExecutor takes no settings here; write them as "
                   "args of the tool code_execution in 'tools'");
  tools.push_back({fields.at(field), vendor_tool("code_execution")});
  return {};
}

} // namespace

std::string_view vendor_tool_of(std::string_view name) {
  const auto found
    = std::ranges::find_if(vendor_names, [name](const auto& each) {
        return is_name_of(each.written, "google.adk.tools", name);
      });
  return found == vendor_names.end() ? std::string_view() : found->tool;
}

bool is_vendor_tool(const yaml_node& item, const tool_registry& known) {
  const auto name = written_name(item);
  return !vendor_tool_of(name).empty() && !known.contains(name)
         && !is_command_tool(item);
}

result<std::vector<placed_vendor_tool>>
read_vendor_tools(const field_reader& fields, const tool_registry& known) {
  auto items = fields.list("tools");
  if (!items)
    return items.error();
  std::vector<placed_vendor_tool> tools;
  for (const auto& item : *items) {
    if (!is_vendor_tool(*item, known))
      continue;
    const field_reader of(fields.file(), *item);
    auto made = read_one(of);
    if (!made)
      return made.error();
    tools.push_back({of.at(), std::move(*made)});
  }
  if (auto read = read_executor(fields, tools); !read)
    return read.error();
  std::set<std::string_view> names;
  for (const auto& each : tools)
    if (!names.insert(each.which.name).second)
      return fail_at(each.at,
                     fmt::format("the agent has the vendor tool '{}' twice; "
                                 "remove one ('code_executor: "
                                 "BuiltInCodeExecutor' is code_execution, "
                                 "'GoogleSearchTool' is google_search)",
                                 each.which.name));
  return tools;
}

} // namespace troupe
