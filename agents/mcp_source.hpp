// The description of an MCP server, like `McpToolset` in an agent file.

#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace troupe {

/// Calls of an MCP server's tools that the user has to allow.
enum class mcp_confirmation : std::uint8_t {
  none,
  destructive, ///< Tools without the hint that they destroy nothing.
  all,
};

/// Describes an MCP server: a program that is started (`command`), or an
/// address (`url`). Exactly one of the two is set.
struct mcp_source {
  /// Program of the server, a path or a name that is searched in `PATH`. It is
  /// started without a shell, and reads and writes messages over stdin and
  /// stdout.
  std::string command = {};
  /// Arguments of the program.
  std::vector<std::string> args = {};
  /// Further environment variables of the program. It inherits only `PATH`,
  /// `HOME`, `USER`, `LOGNAME`, `SHELL`, `TERM`, `TMPDIR`, `TZ`, `LANG`,
  /// `LC_ALL` and `LC_CTYPE`.
  std::map<std::string, std::string> env = {};
  /// Names of environment variables of this process that the program gets, too.
  std::vector<std::string> passed_variables = {};
  /// Working folder of the program; empty: that of this process.
  std::filesystem::path folder = {};
  /// Address of a server that speaks streamable HTTP: `https://…`, or
  /// `http://…`.
  std::string url = {};
  /// Headers of each HTTP request.
  std::map<std::string, std::string> headers = {};
  /// Headers whose texts are environment variables of this process: the name of
  /// the header and that of the variable.
  std::map<std::string, std::string> header_variables = {};
  /// Environment variable with the bearer token of each HTTP request; empty:
  /// none.
  std::string bearer_variable = {};
  /// Names of the tools to offer, as the server knows them; empty: all.
  std::vector<std::string> tool_filter = {};
  /// Put before the name of each tool, with a `_` between them; empty: none.
  std::string tool_name_prefix = {};
  /// Calls that the user has to allow.
  mcp_confirmation require_confirmation = mcp_confirmation::none;
  /// Limit of the time in which the server starts and lists its tools.
  std::chrono::milliseconds start_timeout{30'000};
  /// Time limit of one call; 0: `run_options::tool_timeout`.
  std::chrono::milliseconds call_timeout{0};
  /// Age at which the list of tools is asked for again. Until the new list
  /// comes, agents have the old one. 0: the age that the server names, if any.
  /// A change that the server reports counts in any case.
  std::chrono::milliseconds list_lifetime{0};

  friend bool operator==(const mcp_source&, const mcp_source&) = default;
};

} // namespace troupe
