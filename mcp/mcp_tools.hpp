// The tools of an MCP server (Model Context Protocol) as tools of agents.
//
//   auto files = troupe::mcp_tools({.command = "mcp-server-filesystem",
//                                   .args = {"/srv/texts"}});
//   auto reader = troupe::llm({.name = "reader", …, .toolsets = {files}});

#pragma once

#include "troupe/agents/mcp_source.hpp"
#include "troupe/agents/toolset.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Progress of a call, as the server reports it.
struct mcp_progress {
  /// Name of the tool, as the model knows it.
  std::string tool;
  /// Work that is done, in any unit; grows.
  double done = 0;
  /// Whole work in the same unit, if the server knows it.
  std::optional<double> total;
  /// Text for people; may be empty.
  std::string message;
};

/// Versions of the protocol that a client tries.
enum class mcp_version : std::uint8_t {
  any,       ///< The newest one that the server knows.
  handshake, ///< 2025-11-25 and older ones, which begin with `initialize`.
  stateless, ///< 2026-07-28.
};

/// Settings of the program, which a source cannot change.
struct mcp_options {
  /// Versions of the protocol.
  mcp_version version = mcp_version::any;
  /// False: connects when the tools are first asked for, or called.
  bool connects_at_once = true;
  /// Called for each progress of a call. Called on a thread of the connection,
  /// so it must not block; it must not throw.
  std::function<void(const mcp_progress&)> on_progress = {};
  /// Called with lines for people: a tool that is left out, a server that
  /// ended, a start that failed and of which no answer of the set tells. Called
  /// on a thread of the connection, or on one that asks for the tools. It must
  /// not block, must not throw, and must not use the set.
  std::function<void(std::string_view line)> on_log = {};
  /// Reads an environment variable; unset: the environment of the process.
  std::function<std::optional<std::string>(const std::string& name)> variable
    = {};
  /// The wait before a server that ended or failed is started again. It doubles
  /// with each failure, up to `restart_longest`.
  std::chrono::milliseconds restart_first{250};
  /// Upper limit of that wait.
  std::chrono::milliseconds restart_longest{30'000};
  /// The time in which a program may end after its input was closed, and again
  /// after SIGTERM. Then it is killed.
  std::chrono::milliseconds end_grace{2'000};
  /// Limit of the bytes of one message of the server. A larger one ends the
  /// connection with a program, and fails the request over HTTP.
  std::size_t message_bytes_max = std::size_t{16} << 20U;
};

/// Makes the set of a server's tools, and begins to connect; does not wait for
/// it. All agents with this set share one connection, on which many calls may
/// be under way.
///
/// If the server ends or cannot be reached, calls under way fail, and the next
/// call or request for the tools connects again. A call that was sent is not
/// repeated, since it may have had an effect.
///
/// A tool returns `{"content": [block, …], "structuredContent": any}`, as ADK
/// does. Images, audio and resources with bytes become artifacts, whose names
/// the blocks have under `artifact`; the model also sees images, up to 192 KiB
/// for each answer. A result with `isError` is a
/// failure of the tool, `errc::tool_failed`, with the server's text. Progress
/// does not extend the time limit of a call.
///
/// The set ends its program when its last copy is destroyed, which takes up to
/// twice `mcp_options::end_grace` for a program that does not want to end.
///
/// Throws `errc::invalid_argument` for a source that has none or both of
/// `command` and `url`, or a field of the other one; for a bad URL, prefix or
/// time; for headers or a token over plain HTTP to another machine; and for a
/// variable that the source names and that is not set. `toolset::tools` fails
/// with `errc::tool_failed` if the server does not start, does not speak MCP,
/// or lists no tool that `tool_filter` names.
toolset_ptr mcp_tools(mcp_source source, mcp_options options = {});

} // namespace troupe
