#include "troupe/agents/files/tool_reader.hpp"

#include "troupe/agents/agent_tool.hpp"
#include "troupe/agents/files/command_reader.hpp"
#include "troupe/agents/files/mcp_reader.hpp"
#include "troupe/agents/files/openapi_reader.hpp"
#include "troupe/agents/files/python_name.hpp"
#include "troupe/agents/files/vendor_tool_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

namespace troupe {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view tools_package = "google.adk.tools";
constexpr adk_name agent_tool_name{"AgentTool", "agent_tool"};
constexpr adk_name long_running_name{"LongRunningFunctionTool",
                                     "long_running_tool"};

// Tools that a program may register (agents/standard_tools.hpp).
constexpr auto standard_names
  = std::to_array<adk_name>({{"exit_loop", "exit_loop_tool"},
                             {"get_user_choice", "get_user_choice_tool"},
                             {"load_artifacts", "load_artifacts_tool"},
                             {"load_memory", "load_memory_tool"},
                             {"preload_memory", "preload_memory_tool"}});

// Further tools of ADK, in `google.adk.tools`.
constexpr auto missing_tools
  = std::to_array<std::string_view>({"APIHubToolset",
                                     "ApiRegistry",
                                     "DiscoveryEngineSearchTool",
                                     "ExampleTool",
                                     "FunctionTool",
                                     "ModelConsultTool",
                                     "TransferToAgentTool",
                                     "VertexAiLoadProfilesTool",
                                     "VertexAiSearchTool",
                                     "request_input",
                                     "transfer_to_agent"});

bool is_missing_tool(std::string_view name) {
  return name.starts_with("google.adk.")
         || std::ranges::find(missing_tools, name) != missing_tools.end();
}

} // namespace

result<std::string> item_name(const fs::path& file,
                              const yaml_node& item,
                              std::string_view what,
                              std::string_view besides) {
  if (item.kind == yaml_node::form::scalar)
    return item.text;
  const auto* name = item.find("name");
  if (name == nullptr || name->value->kind != yaml_node::form::scalar)
    return fail_at({&file, item.line},
                   fmt::format("expected a {}'s name or {{name: …}}", what));
  for (const auto& [field, line, column, unused, is_quoted] : item.fields)
    if (field != "name" && field != besides)
      return fail_at({&file, line},
                     fmt::format("unknown field '{}'; a {} has name{}{}",
                                 field,
                                 what,
                                 besides.empty() ? "" : " and ",
                                 besides));
  return name->value->text;
}

result<std::vector<tool>> tool_reader::read(const field_reader& fields) const {
  auto items = fields.list("tools");
  if (!items)
    return items.error();
  std::vector<tool> tools;
  std::set<std::string> names;
  for (const auto& item : *items) {
    if (is_mcp_toolset(*item) || is_vendor_tool(*item, known_))
      continue; // Read by itself.
    const file_place at{&fields.file(), item->line};
    auto made = read_item(fields.file(), *item);
    if (!made)
      return made.error();
    for (auto& each : *made) {
      if (!names.insert(each.name()).second)
        return fail_at(at,
                       fmt::format("the tool '{}' comes twice", each.name()));
      tools.push_back(std::move(each));
    }
  }
  return tools;
}

// Reads the tool of an item, or those of an API.
result<std::vector<tool>> tool_reader::read_item(const fs::path& file,
                                                 const yaml_node& item) const {
  if (is_openapi_toolset(item))
    return read_openapi_toolset(field_reader(file, item), access_);
  auto made = read_tool(file, item);
  if (!made)
    return made.error();
  return std::vector{std::move(*made)};
}

// Reads a tool: by name, or with args as in `{name: AgentTool, args: {agent:
// …}}` or `{name: LongRunningFunctionTool, args: {func: NAME}}`.
result<tool> tool_reader::read_tool(const fs::path& file,
                                    const yaml_node& item) const {
  const field_reader fields(file, item);
  auto asks = item.kind == yaml_node::form::map
                ? fields.flag("require_confirmation")
                : false;
  if (!asks)
    return asks.error();
  const auto* args = item.find("args");
  auto made = is_command_tool(item) ? read_command_tool(fields, access_)
              : args != nullptr     ? read_made_tool(fields, *args->value)
                                    : read_known_tool(file, item);
  if (!made || !*asks)
    return made;
  auto options = made->options();
  options.require_confirmation = true;
  return tool(std::move(options));
}

result<tool> tool_reader::read_known_tool(const fs::path& file,
                                          const yaml_node& item) const {
  auto name = item_name(file, item, "tool", "require_confirmation");
  if (!name)
    return name.error();
  return find_tool({&file, item.line}, *name);
}

result<tool> tool_reader::find_tool(const file_place& at,
                                    std::string_view name) const {
  auto known = known_.find(name);
  if (known == known_.end())
    for (const auto& standard : standard_names)
      if (is_name_of(standard, tools_package, name)) {
        name = standard.name;
        known = known_.find(name);
      }
  if (known == known_.end())
    return unknown_tool(at, name);
  return known->second;
}

error tool_reader::unknown_tool(const file_place& at,
                                std::string_view name) const {
  const auto known = fmt::format(
    "known tools: {}",
    known_.empty() ? "none" : list_names(known_, [](const auto& row) {
      return row.first;
    }));
  if (is_name_of(agent_tool_name, tools_package, name))
    return fail_at(
      at, "AgentTool needs args, such as {agent: {config_path: FILE}}");
  if (is_name_of(long_running_name, tools_package, name))
    return fail_at(
      at, "LongRunningFunctionTool needs args, {func: NAME OF A TOOL}");
  if (!vendor_tool_of(name).empty())
    return fail_at(at,
                   fmt::format("'{}' runs at the model's vendor and cannot be "
                               "wrapped as a long-running tool; list it "
                               "directly in 'tools'",
                               name));
  if (is_missing_tool(name))
    return fail_at(at,
                   fmt::format("troupe does not have ADK's tool '{}'; {}; {}",
                               name,
                               way_without_python(python_code::tool),
                               known));
  if (is_python_name(name))
    return fail_on_python(
      at,
      name,
      fmt::format("{}; {}", way_without_python(python_code::tool), known));
  return fail_at(at, fmt::format("unknown tool '{}'; {}", name, known));
}

result<tool> tool_reader::read_made_tool(const field_reader& outer,
                                         const yaml_node& args) const {
  for (const auto& [field, line, column, unused, is_quoted] :
       outer.node().fields)
    if (field != "name" && field != "args" && field != "require_confirmation")
      return fail_at({&outer.file(), line},
                     fmt::format("unknown field '{}'; a tool has name, args "
                                 "and require_confirmation",
                                 field));
  auto name = outer.text("name");
  if (!name)
    return name.error();
  const field_reader fields(outer.file(), args);
  const auto called = name->value_or("");
  if (is_name_of(agent_tool_name, tools_package, called))
    return read_agent_tool(fields);
  if (is_name_of(long_running_name, tools_package, called))
    return read_long_running_tool(fields);
  if (!known_.contains(called)
      && (is_missing_tool(called) || is_python_name(called)))
    return unknown_tool(outer.at("name"), called);
  return fail_at(
    outer.at("args"),
    "only AgentTool, LongRunningFunctionTool, McpToolset and OpenAPIToolset "
    "have args; name a tool of the program without them");
}

result<tool>
tool_reader::read_long_running_tool(const field_reader& fields) const {
  const auto& args = fields.node();
  const auto* name
    = args.kind == yaml_node::form::map && args.fields.size() == 1
        ? fields.find("func")
        : nullptr;
  if (name == nullptr || name->kind != yaml_node::form::scalar)
    return fail_at(fields.at(), "expected {func: NAME OF A TOOL}");
  auto known = find_tool(fields.at("func"), name->text);
  if (!known)
    return known;
  auto options = known->options();
  options.long_running = true;
  try {
    return tool(std::move(options));
  } catch (const error& failure) {
    return fail_at(fields.at("func"), failure.message());
  }
}

result<tool> tool_reader::read_agent_tool(const field_reader& fields) const {
  const auto& file = fields.file();
  const auto& args = fields.node();
  if (args.kind != yaml_node::form::map || fields.find("agent") == nullptr)
    return fail_at(fields.at(),
                   "expected {agent: {config_path: …} or an agent}");
  for (const auto& [field, line, column, unused, is_quoted] : args.fields)
    if (field != "agent" && field != "skip_summarization")
      return fail_at({&file, line},
                     fmt::format("unknown field '{}'; AgentTool has agent "
                                 "and skip_summarization",
                                 field));
  auto skips = fields.flag("skip_summarization");
  if (!skips)
    return skips.error();
  auto which = read_agent_(file, *fields.find("agent"));
  if (!which)
    return which.error();
  return agent_tool(std::move(*which), {.skip_summarization = *skips});
}

} // namespace troupe
