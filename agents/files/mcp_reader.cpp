#include "troupe/agents/files/mcp_reader.hpp"

#include "troupe/agents/files/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>

namespace troupe {

namespace {

using names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 4> toolset_names
  = {"McpToolset",
     "MCPToolset",
     "google.adk.tools.mcp_tool.McpToolset",
     "google.adk.tools.mcp_tool.mcp_toolset.McpToolset"};
constexpr std::array<std::string_view, 3> item_fields
  = {"name", "args", "require_confirmation"};
constexpr std::array<std::string_view, 11> args_fields
  = {"stdio_server_params",
     "stdio_connection_params",
     "streamable_http_connection_params",
     "sse_connection_params",
     "tool_filter",
     "tool_name_prefix",
     "tool_list_cache_ttl_seconds",
     "call_timeout",
     "auth_scheme",
     "auth_credential",
     "use_mcp_resources"};
constexpr std::array<std::string_view, 5> program_fields
  = {"command", "args", "env", "pass_env", "cwd"};
constexpr std::array<std::string_view, 2> stdio_fields
  = {"server_params", "timeout"};
constexpr std::array<std::string_view, 7> http_fields = {"url",
                                                         "headers",
                                                         "headers_env",
                                                         "bearer_env",
                                                         "timeout",
                                                         "sse_read_timeout",
                                                         "terminate_on_close"};

result<void>
check_fields(const field_reader& fields, std::string_view what, names known) {
  const auto& node = fields.node();
  if (node.kind != yaml_node::form::map)
    return fail_at(
      fields.at(),
      fmt::format("{} must be a mapping, not {}", what, to_string(node.kind)));
  for (const auto& field : node.fields)
    if (std::ranges::find(known, field.name) == known.end())
      return fail_at(
        {&fields.file(), field.line},
        fmt::format("unknown field '{}'; {} has {}",
                    field.name,
                    what,
                    list_names(known, [](const auto& name) { return name; })));
  return {};
}

// Texts of a list; other scalars count as their text, as in a command line.
result<std::vector<std::string>> read_texts(const field_reader& fields,
                                            std::string_view name) {
  auto items = fields.list(name);
  if (!items)
    return items.error();
  std::vector<std::string> texts;
  for (const auto& item : *items) {
    if (item->kind != yaml_node::form::scalar)
      return fail_at({&fields.file(), item->line},
                     fmt::format("'{}' must be a list of texts", name));
    texts.push_back(item->text);
  }
  return texts;
}

// A mapping of names to texts.
result<std::map<std::string, std::string>>
read_text_map(const field_reader& fields, std::string_view name) {
  std::map<std::string, std::string> texts;
  const auto* found = fields.find(name);
  if (found == nullptr)
    return texts;
  if (found->kind != yaml_node::form::map)
    return fail_at(fields.at(name),
                   fmt::format("'{}' must be a mapping of texts", name));
  for (const auto& field : found->fields) {
    if (field.value->kind != yaml_node::form::scalar)
      return fail_at({&fields.file(), field.line},
                     fmt::format("'{}' must be a text", field.name));
    texts[field.name] = field.value->text;
  }
  return texts;
}

class source_reader {
public:
  source_reader(const std::vector<std::string>& commands,
                const std::vector<std::string>& variables)
    : commands_(commands),
      variables_(variables) {}

  result<mcp_source> read(const field_reader& item) {
    if (item.node().kind == yaml_node::form::scalar)
      return needs_args(item);
    if (auto checked = check_fields(item, "McpToolset", item_fields); !checked)
      return checked.error();
    if (auto read = read_confirmation(item); !read)
      return read.error();
    const auto* args = item.find("args");
    if (args == nullptr)
      return needs_args(item);
    const field_reader fields(item.file(), *args);
    if (auto checked = check_fields(fields, "McpToolset", args_fields);
        !checked)
      return checked.error();
    if (auto read = read_place(fields); !read)
      return read.error();
    if (auto read = read_choice(fields); !read)
      return read.error();
    return std::move(made_);
  }

private:
  static error needs_args(const field_reader& item) {
    return fail_at(item.at(),
                   "McpToolset needs args with stdio_connection_params or "
                   "streamable_http_connection_params (docs/mcp.md)");
  }

  result<void> read_confirmation(const field_reader& item) {
    if (const auto* found = item.find("require_confirmation");
        found != nullptr && found->text == "destructive") {
      made_.require_confirmation = mcp_confirmation::destructive;
      return {};
    }
    auto asks = item.flag("require_confirmation");
    if (!asks)
      return asks.error();
    if (*asks)
      made_.require_confirmation = mcp_confirmation::all;
    return {};
  }

  result<void> read_place(const field_reader& fields) {
    for (const auto* const name : {"auth_scheme", "auth_credential"})
      if (fields.find(name) != nullptr)
        return fail_at(fields.at(name),
                       fmt::format("'{}' is not supported; name an environment "
                                   "variable with bearer_env or headers_env in "
                                   "streamable_http_connection_params",
                                   name));
    if (fields.find("sse_connection_params") != nullptr)
      return fail_at(fields.at("sse_connection_params"),
                     "the transport HTTP+SSE of 2024-11-05 is not supported; "
                     "servers have streamable HTTP in its place: "
                     "streamable_http_connection_params");
    std::vector<std::string_view> given;
    for (const auto name : names(args_fields).first(3))
      if (fields.find(name) != nullptr)
        given.push_back(name);
    if (given.size() != 1)
      return fail_at(fields.at(),
                     "McpToolset needs one of stdio_server_params, "
                     "stdio_connection_params and "
                     "streamable_http_connection_params");
    const auto which = given.front();
    const field_reader place(fields.file(), *fields.find(which));
    if (which == args_fields[0])
      return read_program(place, which);
    return which == args_fields[1] ? read_stdio(place, which)
                                   : read_http(place, which);
  }

  result<void> read_stdio(const field_reader& fields, std::string_view what) {
    if (auto checked = check_fields(fields, what, stdio_fields); !checked)
      return checked;
    if (auto read = read_time(fields, "timeout", made_.start_timeout); !read)
      return read;
    const auto* program = fields.find("server_params");
    if (program == nullptr)
      return fail_at(fields.at(), "expected a field 'server_params'");
    return read_program(field_reader(fields.file(), *program), "server_params");
  }

  result<void> read_program(const field_reader& fields, std::string_view what) {
    if (auto checked = check_fields(fields, what, program_fields); !checked)
      return checked;
    auto command = fields.text("command");
    if (!command)
      return command.error();
    if (!*command || (*command)->empty())
      return fail_at(
        fields.at(),
        "expected a field 'command', the name or path of a program");
    const auto folder = std::filesystem::absolute(fields.file()).parent_path();
    const bool is_path = (*command)->find('/') != std::string::npos;
    made_.command
      = is_path ? std::filesystem::weakly_canonical(folder / **command).string()
                : **command;
    if (auto allowed
        = check_command(fields.at("command"), made_.command, is_path);
        !allowed)
      return allowed;
    auto args = read_texts(fields, "args");
    if (!args)
      return args.error();
    made_.args = std::move(*args);
    auto env = read_text_map(fields, "env");
    if (!env)
      return env.error();
    for (const auto& [name, text] : *env)
      if (auto allowed = check_variable(fields.at("env"), name); !allowed)
        return allowed;
    made_.env = std::move(*env);
    auto passed = read_texts(fields, "pass_env");
    if (!passed)
      return passed.error();
    for (const auto& name : *passed)
      if (auto allowed = check_variable(fields.at("pass_env"), name); !allowed)
        return allowed;
    made_.passed_variables = std::move(*passed);
    auto cwd = fields.text("cwd");
    if (!cwd)
      return cwd.error();
    if (*cwd)
      made_.folder = folder / **cwd;
    return {};
  }

  result<void> read_http(const field_reader& fields, std::string_view what) {
    if (auto checked = check_fields(fields, what, http_fields); !checked)
      return checked;
    auto url = fields.text("url");
    if (!url)
      return url.error();
    if (!*url)
      return fail_at(fields.at(), "expected a field 'url'");
    made_.url = **url;
    auto headers = read_text_map(fields, "headers");
    if (!headers)
      return headers.error();
    for (const auto& [name, text] : *headers)
      if (may_hold_key(name))
        return fail_at(fields.at("headers"),
                       fmt::format("'{}': keys are not allowed in files; name "
                                   "an environment variable with bearer_env or "
                                   "headers_env",
                                   name));
    made_.headers = std::move(*headers);
    auto named = read_text_map(fields, "headers_env");
    if (!named)
      return named.error();
    made_.header_variables = std::move(*named);
    auto bearer = fields.text("bearer_env");
    if (!bearer)
      return bearer.error();
    made_.bearer_variable = bearer->value_or("");
    for (const auto& [header, name] : made_.header_variables)
      if (auto allowed = check_variable(fields.at("headers_env"), name);
          !allowed)
        return allowed;
    if (!made_.bearer_variable.empty())
      if (auto allowed
          = check_variable(fields.at("bearer_env"), made_.bearer_variable);
          !allowed)
        return allowed;
    if (fields.find("terminate_on_close") != nullptr) {
      auto ends = fields.flag("terminate_on_close");
      if (!ends)
        return ends.error();
      if (!*ends)
        return fail_at(
          fields.at("terminate_on_close"),
          "remove 'terminate_on_close': a session always ends with "
          "its last agent");
    }
    if (auto read = read_time(fields, "timeout", made_.start_timeout); !read)
      return read;
    return read_time(fields, "sse_read_timeout", made_.call_timeout);
  }

  result<void> read_choice(const field_reader& fields) {
    auto filter = read_texts(fields, "tool_filter");
    if (!filter)
      return filter.error();
    made_.tool_filter = std::move(*filter);
    auto prefix = fields.text("tool_name_prefix");
    if (!prefix)
      return prefix.error();
    made_.tool_name_prefix = prefix->value_or("");
    auto resources = fields.flag("use_mcp_resources");
    if (!resources)
      return resources.error();
    if (*resources)
      return fail_at(fields.at("use_mcp_resources"),
                     "remove 'use_mcp_resources': resources are not supported "
                     "as tools");
    if (auto read = read_time(fields, "call_timeout", made_.call_timeout);
        !read)
      return read;
    return read_time(
      fields, "tool_list_cache_ttl_seconds", made_.list_lifetime);
  }

  static result<void> read_time(const field_reader& fields,
                                std::string_view name,
                                std::chrono::milliseconds& into) {
    auto read = fields.seconds(name);
    if (!read)
      return read.error();
    into = read->value_or(into);
    return {};
  }

  // A path of the file is compared with the paths that the user allows, which
  // start at the working folder.
  result<void> check_command(const file_place& at,
                             const std::string& command,
                             bool is_path) const {
    const auto allows = [&](const std::string& allowed) {
      return is_path ? allowed.find('/') != std::string::npos
                         && std::filesystem::weakly_canonical(
                              std::filesystem::absolute(allowed))
                              == command
                     : allowed == command;
    };
    if (std::ranges::any_of(commands_, allows))
      return {};
    return fail_at(
      at,
      fmt::format("the file wants to start the program '{}'; allow "
                  "it with --allow-command {} (in C++: "
                  "agent_file_options::allowed_commands), or "
                  "remove the tool",
                  command,
                  command));
  }

  result<void> check_variable(const file_place& at,
                              const std::string& name) const {
    if (std::ranges::find(variables_, name) != variables_.end())
      return {};
    return fail_at(at,
                   fmt::format("the file wants to use the environment "
                               "variable {}; allow it with --allow-env {} (in "
                               "C++: agent_file_options::allowed_variables)",
                               name,
                               name));
  }

  const std::vector<std::string>& commands_;
  const std::vector<std::string>& variables_;
  mcp_source made_;
};

} // namespace

bool is_mcp_toolset(const yaml_node& item) {
  const auto* name = item.find("name");
  const auto& written = name != nullptr ? name->value->text : item.text;
  return std::ranges::find(toolset_names, written) != toolset_names.end();
}

result<mcp_source> read_mcp_toolset(const field_reader& item,
                                    const std::vector<std::string>& commands,
                                    const std::vector<std::string>& variables) {
  return source_reader(commands, variables).read(item);
}

} // namespace troupe
