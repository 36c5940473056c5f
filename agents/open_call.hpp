// Calls of a session that wait for an answer from outside, and the messages
// that answer them.
//
//   for (const auto& call : runtime.sessions().open_calls(key).value())
//     if (call.question)
//       runtime.run(agent, key, troupe::allow(call)).wait().value();
//     // Without a question: troupe::answer(call, result).

#pragma once

#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/content.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/json.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// A call that a paused run waits for: a question to the user about the call of
/// a tool, a long-running tool whose result comes from outside, or the question
/// of a workflow's node (`tool` is `request_input_name` then). A plain
/// value; `session_service::open_calls` makes it from the session's history.
struct open_call {
  open_call() = default;

  /// Id of the call that waits, unique in the session.
  std::string id;
  /// Name of the tool whose call waits.
  std::string tool;
  /// Arguments of that tool, an object.
  value args;
  /// Name of the agent that has made the call.
  std::string agent;
  /// The question to the user, with `hint` and `payload`: `allow` or `deny` the
  /// call. Unset: `answer` the call with the tool's result.
  std::optional<tool_confirmation> question;
};

/// Returns the calls in `events` that a paused run waits for, oldest first.
/// Calls of a pause that another run has continued from are not open, nor are
/// calls that a rewind has taken back. `events` must be all events of a
/// session.
std::vector<open_call> open_calls(const event_slice& events);

/// Makes the message that allows the call. Start a run with it. `payload` is
/// given to a tool that asks by `tool_context::request_confirmation`. Throws
/// `errc::invalid_argument` if the call is no question: use `answer`.
content allow(const open_call& call, json payload = nullptr);

/// Makes the message that refuses the call; the model is told so. `payload` as
/// for `allow`. Throws `errc::invalid_argument` if the call is no question: use
/// `answer`.
content deny(const open_call& call, json payload = nullptr);

/// Makes the message with the result of a long-running call, or the answer to
/// the question of a workflow's node. An object is the response as it is; any
/// other value becomes `{"result": …}`. Throws
/// `errc::invalid_argument` if the call is a question: use `allow` or `deny`.
content answer(const open_call& call, json result);

/// Joins answers to several calls of one run into one message:
/// `join_answers({allow(first), deny(second)})`.
content join_answers(const std::vector<content>& messages);

} // namespace troupe
