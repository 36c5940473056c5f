// Runs that wait for answers from outside, as a session's history keeps them:
// where one paused, who goes on from there, and what message lets it.
//
// Events that say so keep it under `actions.agentState`, an object:
//
//   {"checkpoint": …, "waitsFor": [call id]}   a run has paused: its last event
//   {"resumes": event id}                      a run goes on from that pause:
//                                              the message that started it
//   {"releases": event id}                     that run has failed, and the
//                                              pause is open again
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

/// Reads the response to a request for confirmation. Fails with
/// `errc::invalid_argument`.
result<tool_confirmation> read_confirmation(const json& response);

/// Where a run goes on.
struct resumption {
  std::string event_id;
  checkpoint_ptr where;
};

/// Checks the responses in a user's message before it is appended to `events`:
/// each answers a call there that waits for one, by its id and name, and all of
/// them go to the same run. Gives the pause that the run goes on from; nothing
/// if the message answers no calls, or calls that no run waits for any more.
///
/// Fails with `errc::invalid_argument`, and with `errc::conflict` if another
/// run has gone on from there and has not failed, unless `takes_over`.
result<std::optional<resumption>> check_responses(const content& message,
                                                  const event_slice& events,
                                                  bool takes_over);

/// The pause of that id, which is in `events`.
std::optional<resumption> find_pause(const event_slice& events,
                                     std::string_view event_id);

/// The last event of a run that pauses.
event make_pause_event(std::string root_name, const checkpoint& where);

/// The ids of the calls that the run waits for whose last event this is; of
/// another event none.
std::vector<std::string> waits_in(const event& said);

/// Writes into a message that its run goes on from a pause; and the id that is
/// written there, or nothing.
void claim_pause(event& message, const std::string& event_id);
std::optional<std::string> claimed_pause(const event& message);

/// The last event of a run that has gone on from a pause and failed.
event make_release_event(std::string root_name, const std::string& event_id);

} // namespace troupe
