// Paused runs, as the session's history records them: where a run paused, and
// which message continues it.
//
// Events record this under `actions.agentState`, an object:
//
//   {"checkpoint": …, "waitsFor": [call id]}   last event of a run: it paused
//   {"resumes": event id}                      message of a run: it continues
//                                              from the pause in that event
//   {"releases": event id}                     the run of that message failed;
//                                              its claim on the pause ends
//   {"forkedFrom": {"session": id, "revision": number, "incarnation": number},
//    "keepsOpenCalls": true}                   the session was forked there,
//    and
//                                              the pauses before are closed,
//                                              but for `keepsOpenCalls`
//
// If two messages answer the same pause, one of them starts a run and the other
// is refused, even if different processes receive them.

#pragma once

#include "troupe/contexts/lanes/checkpoint.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/json.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// A call and the event that made it; both point into the history.
struct found_call {
  /// Event that made the call.
  const troupe::event* event = nullptr;
  /// Call among the parts of that event.
  const function_call* call = nullptr;
};

/// The newest call with that id; unset if there is none.
std::optional<found_call> find_call(const event_slice& events,
                                    std::string_view id);

/// Returns true if the result of the call comes from outside.
bool is_long_running(const found_call& found);

/// Returns true if the message answers calls.
bool has_responses(const content& message);

/// Returns true if all parts of the message answer calls, also without parts.
bool only_answers(const content& message);

/// Reads the response to a question about a call. Fails with
/// `errc::invalid_argument`.
result<tool_confirmation> read_confirmation(const json& response);

/// The pause from which a run continues.
struct resumption {
  /// Id of the event that records the pause.
  std::string event_id;
  /// Position from which the run continues; not null in a found pause.
  checkpoint_ptr where;
};

/// Rights of the run that a message starts.
struct answer_rights {
  /// The value of `run_options::take_over`.
  bool takes_over = false;
  /// True if the root agent can handle the answer to a call that no run waits
  /// for.
  bool takes_news = false;
  /// Names of the agents of the run that are in mode `task`; null if there is
  /// none.
  std::shared_ptr<const std::vector<std::string>> tasks;
};

/// Checks the responses in a user's message before it is appended to `events`.
/// Each must answer a waiting call there, by id and name, and all must belong
/// to the same run. Returns the pause that the run continues from; unset if the
/// message answers no calls, or only calls that no run waits for. Calls and
/// pauses that a rewind has taken back do not count, here and below.
///
/// Fails with `errc::invalid_argument`, and with `errc::conflict` if another
/// run has continued from the pause and has not failed.
result<std::optional<resumption>> check_responses(const content& message,
                                                  const event_slice& events,
                                                  const answer_rights& rights);

/// Ids of the calls that paused runs wait for, oldest pause first. A pause that
/// another run has continued from, and that run has not failed, waits for none.
std::vector<std::string> open_ids(const event_slice& events);

/// The pause in event `event_id`; unset if `events` has none.
std::optional<resumption> find_pause(const event_slice& events,
                                     std::string_view event_id);

/// Makes the last event of a run that pauses.
event make_pause_event(std::string root_name, const checkpoint& where);

/// Ids of the calls that a run waits for, if this is its last event;
/// else empty.
std::vector<std::string> waits_in(const event& said);

/// A message's claim on a pause: its run continues from there.
struct pause_claim {
  /// Id of the message that continues the run.
  std::string message_id;
  /// Id of the event that records the pause.
  std::string pause_id;
};

/// Writes a claim on the pause in event `pause_id` into a message.
void claim_pause(event& message, const std::string& pause_id);
/// Reads the claim of a message; unset if it has none.
std::optional<pause_claim> claim_of(const event& message);

/// Returns the id of the message whose run has failed, if the event says so:
/// the run's claim on its pause has ended. Else empty.
std::string released_in(const event& said);

/// The session that a fork comes from.
struct fork_origin {
  std::string session;           ///< Id of the parent.
  std::uint64_t revision = 0;    ///< Revision at which the fork begins.
  std::uint64_t incarnation = 0; ///< That of the parent; 0 if not known.
};

/// Makes the first event of a fork. It closes the pauses before it, unless the
/// fork keeps them open.
event make_fork_event(const fork_origin& origin, bool keeps_open_calls);

/// The revision of the parent at which a fork began, if this is the fork's
/// first own event; else unset.
std::optional<std::uint64_t> forked_at(const event& said);

/// Returns true if the event closes the pauses before it.
bool closes_calls(const event& said);

/// Makes the last event of a run that claimed a pause but failed or did not
/// start its agents.
event make_release_event(std::string root_name, const std::string& message_id);

} // namespace troupe
