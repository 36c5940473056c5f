// Runs that wait for answers from outside, as a session's history keeps them:
// where one paused, who goes on from there, and what message lets it.
//
// Events that say so keep it under `actions.agentState`, an object:
//
//   {"checkpoint": …, "waitsFor": [call id]}   a run has paused: its last event
//   {"resumes": event id}                      a run goes on from that pause:
//                                              the message that started it
//   {"releases": event id}                     the run of that message has
//                                              failed, and claims nothing more
//
// So of two messages that answer the same pause one starts a run, the other is
// refused, also when they come to different programs.

#pragma once

#include "troupe/contexts/checkpoint.hpp"
#include "troupe/contexts/tool_confirmation.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The name of the call by which the user is asked about another call: `{
/// "originalFunctionCall": {"id", "name", "args"}, "toolConfirmation": {"hint",
/// "payload"}}`, as in ADK. The response is `{"confirmed": bool, "payload"?}`.
inline constexpr std::string_view confirmation_name
  = "adk_request_confirmation";

/// A call and who made it; both lie in the history.
struct found_call {
  const event* said = nullptr;
  const function_call* call = nullptr;
};

/// The newest call with that id, or nothing.
std::optional<found_call> find_call(const event_slice& events,
                                    std::string_view id);

/// Whether the result of the call comes from outside.
bool is_long_running(const found_call& found);

/// Whether the message answers calls.
bool has_responses(const content& message);

/// Whether the message has nothing but answers to calls, or has no parts.
bool only_answers(const content& message);

/// Reads the response to a request for confirmation. Fails with
/// `errc::invalid_argument`.
result<tool_confirmation> read_confirmation(const json& response);

/// Where a run goes on.
struct resumption {
  std::string event_id;
  checkpoint_ptr where;
};

/// What the run of a message may do.
struct answer_rights {
  /// See `run_options::take_over`.
  bool takes_over = false;
  /// Its root can tell an agent what has become of a call that no run waits
  /// for.
  bool takes_news = false;
};

/// Checks the responses in a user's message before it is appended to `events`:
/// each answers a call there that waits for one, by its id and name, and all of
/// them go to the same run. Gives the pause that the run goes on from; nothing
/// if the message answers no calls, or calls that no run waits for.
///
/// Fails with `errc::invalid_argument`, and with `errc::conflict` if another
/// run has gone on from there and has not failed.
result<std::optional<resumption>> check_responses(const content& message,
                                                  const event_slice& events,
                                                  const answer_rights& rights);

/// The pause of that id, which is in `events`.
std::optional<resumption> find_pause(const event_slice& events,
                                     std::string_view event_id);

/// The last event of a run that pauses.
event make_pause_event(std::string root_name, const checkpoint& where);

/// The ids of the calls that the run waits for whose last event this is; of
/// another event none.
std::vector<std::string> waits_in(const event& said);

/// What a message claims for its run: the pause that it goes on from.
struct pause_claim {
  std::string message_id;
  std::string pause_id;
};

/// Writes a claim into a message; and what is written there, or nothing.
void claim_pause(event& message, const std::string& pause_id);
std::optional<pause_claim> claim_of(const event& message);

/// The last event of a run that has not gone on from its pause, or failed.
event make_release_event(std::string root_name, const std::string& message_id);

} // namespace troupe
