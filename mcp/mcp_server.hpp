// An agent as the tool of an MCP server (Model Context Protocol), so that
// editors and other agents can use it.
//
//   troupe::serve_agent(runtime, writer).value(); // On stdin and stdout.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/contexts/run_options.hpp"
#include "troupe/core/error.hpp"
#include "troupe/runtime/runtime.hpp"

#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>

namespace troupe {

/// Settings of `serve_agent`.
struct mcp_server_options {
  /// App of the sessions; empty: the name of the agent.
  std::string app = {};
  /// User of the sessions.
  std::string user = "user";
  /// Limits of the run of each call.
  run_options runs = {};
  /// False: the session of a call that names none is removed when the call has
  /// ended. True: it stays, and the answer has its id in
  /// `_meta["troupe/session"]`.
  bool keeps_sessions = true;
  /// File descriptor of the client's messages, one in each line. It stays open.
  int input = 0;
  /// File descriptor of the answers. It stays open, and nothing else may be
  /// written to it.
  int output = 1;
  /// Number of calls under way. Further ones are refused with a failed result.
  std::size_t calls_max = 32;
  /// Limit in bytes of one message of the client. A larger one is skipped and
  /// answered with an error.
  std::size_t message_bytes_max = std::size_t{4} << 20U;
  /// Limit in bytes of the images, audio and files in one answer. Above it the
  /// answer names what is left out.
  std::size_t media_bytes_max = std::size_t{8} << 20U;
  /// Time that the calls under way may take to end after the end of the input,
  /// or after `stop`. Then they are cancelled.
  std::chrono::milliseconds grace{10'000};
};

/// Offers `root` as one tool with the agent's name and description, and blocks
/// until the input ends, the output breaks, or `stop` is requested. docs/mcp.md
/// describes the tool and the versions of the protocol.
///
/// Calls run at the same time, each on a thread and in a session of its own,
/// unless they name one session. After the end of the input, or after `stop`,
/// the calls under way are answered, within the grace period; a request of
/// `stop` in the grace period that follows the end of the input cancels them.
///
/// Fails with `errc::invalid_argument` for a bad app or user and a limit of 0,
/// with `errc::cancelled` if the client has closed the output, and with
/// `errc::store_failed` if the input cannot be read. Not on a thread of the
/// runtime, which must outlive the call.
result<void> serve_agent(runtime& on,
                         const agent& root,
                         mcp_server_options options = {},
                         std::stop_token stop = {});

} // namespace troupe
