// Runs that wait for answers from outside, as a session's history keeps them:
// where one paused, which calls it waits for, and what message lets it go on.
//
// A run that pauses ends with an event of its root agent:
//
//   {"actions": {"agentState": {"checkpoint": …, "waitsFor": [call id],
//                               "resumes": event id}}}
//
// `resumes` names the event of the pause that the run itself went on from. One
// that went on and did not pause again ends with `resumes` alone, so that the
// pause is over.

#pragma once

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

/// Reads the response to a request for confirmation. Fails with
/// `errc::invalid_argument`.
result<tool_confirmation> read_confirmation(const json& response);

/// Checks the responses in a user's message before it is appended to `events`:
/// each answers a call there, by its id and name, and all of them go to the
/// same run. Fails with `errc::invalid_argument`.
result<void> check_responses(const content& message, const event_slice& events);

/// Where a run goes on.
struct resumption {
  std::string event_id;
  json checkpoint;
};

/// Where the run goes on whose message is the newest of `events`, if it answers
/// a call that an earlier run of `root_name` waits for.
std::optional<resumption> find_resumption(const event_slice& events,
                                          std::string_view root_name);

/// The ids of the calls that a checkpoint waits for.
std::vector<std::string> waits_of(const json& checkpoint);

/// The last event of a run that pauses, or that has gone on, or both.
event make_pause_event(std::string root_name,
                       const std::optional<json>& checkpoint,
                       const std::optional<resumption>& resumed);

} // namespace troupe
