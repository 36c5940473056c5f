#include "troupe/agents/files/mcp_reader.hpp"

#include "troupe/agents/files/model_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace troupe {

namespace {

using names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 6> toolset_names
  = {"McpToolset",
     "MCPToolset",
     "google.adk.tools.mcp_tool.McpToolset",
     "google.adk.tools.mcp_tool.MCPToolset",
     "google.adk.tools.mcp_tool.mcp_toolset.McpToolset",
     "google.adk.tools.mcp_tool.mcp_toolset.MCPToolset"};
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

class source_reader {
public:
  explicit source_reader(const file_access& access) : access_(access) {}

  result<mcp_source> read(const field_reader& item) {
    if (item.node().kind == yaml_node::form::scalar)
      return needs_args(item);
    if (auto checked = check_known(item, "McpToolset", item_fields); !checked)
      return checked.error();
    if (auto read = read_confirmation(item); !read)
      return read.error();
    const auto* args = item.find("args");
    if (args == nullptr)
      return needs_args(item);
    const field_reader fields(item.file(), *args);
    if (auto checked = check_known(fields, "McpToolset", args_fields); !checked)
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
    if (auto checked = check_known(fields, what, stdio_fields); !checked)
      return checked;
    if (auto read = read_time(fields, "timeout", made_.start_timeout); !read)
      return read;
    const auto* program = fields.find("server_params");
    if (program == nullptr)
      return fail_at(fields.at(), "expected a field 'server_params'");
    return read_program(field_reader(fields.file(), *program), "server_params");
  }

  result<void> read_program(const field_reader& fields, std::string_view what) {
    if (auto checked = check_known(fields, what, program_fields); !checked)
      return checked;
    auto command = fields.text("command");
    if (!command)
      return command.error();
    if (!*command || (*command)->empty())
      return fail_at(
        fields.at(),
        "expected a field 'command', the name or path of a program");
    auto program = access_.program(fields.at("command"), **command);
    if (!program)
      return program.error();
    made_.command = std::move(*program);
    auto args = read_texts(fields, "args");
    if (!args)
      return args.error();
    made_.args = std::move(*args);
    if (auto read
        = access_.read_environment(fields, made_.env, made_.passed_variables);
        !read)
      return read;
    auto cwd = fields.text("cwd");
    if (!cwd)
      return cwd.error();
    if (*cwd)
      made_.folder = folder_of(fields) / **cwd;
    return {};
  }

  result<void> read_http(const field_reader& fields, std::string_view what) {
    if (auto checked = check_known(fields, what, http_fields); !checked)
      return checked;
    auto url = fields.text("url");
    if (!url)
      return url.error();
    if (!*url)
      return fail_at(fields.at(), "expected a field 'url'");
    made_.url = **url;
    if (auto read = read_headers(fields); !read)
      return read;
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

  // Variables of a `.env` are headers at once: the server's client reads the
  // environment only.
  result<void> read_headers(const field_reader& fields) {
    auto headers = read_text_map(fields, "headers");
    if (!headers)
      return headers.error();
    for (const auto& [name, text] : *headers) {
      if (may_hold_key(name) && text.find("${") == std::string::npos)
        return fail_at(fields.at("headers"),
                       fmt::format("'{}': keys are not allowed in files; name "
                                   "an environment variable with bearer_env or "
                                   "headers_env, or by ${{NAME}}",
                                   name));
      auto expanded = access_.expand(fields.at("headers"), text);
      if (!expanded)
        return expanded.error();
      made_.headers.insert_or_assign(name, std::move(*expanded));
    }
    auto named = read_text_map(fields, "headers_env");
    if (!named)
      return named.error();
    for (const auto& [header, name] : *named) {
      auto held = access_.dotenv_value(fields.at("headers_env"), name);
      if (!held)
        return held.error();
      if (*held)
        made_.headers.insert_or_assign(header, std::move(**held));
      else
        made_.header_variables.emplace(header, name);
    }
    auto bearer = fields.text("bearer_env");
    if (!bearer)
      return bearer.error();
    if (!*bearer || (*bearer)->empty())
      return {};
    auto held = access_.dotenv_value(fields.at("bearer_env"), **bearer);
    if (!held)
      return held.error();
    if (*held)
      made_.headers.insert_or_assign("Authorization", "Bearer " + **held);
    else
      made_.bearer_variable = std::move(**bearer);
    return {};
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

  const file_access& access_;
  mcp_source made_;
};

} // namespace

bool is_mcp_toolset(const yaml_node& item) {
  const auto* name = item.find("name");
  const auto& written = name != nullptr ? name->value->text : item.text;
  return std::ranges::find(toolset_names, written) != toolset_names.end();
}

result<mcp_source> read_mcp_toolset(const field_reader& item,
                                    const file_access& access) {
  return source_reader(access).read(item);
}

} // namespace troupe
