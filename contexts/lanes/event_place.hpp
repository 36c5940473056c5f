// The place of an event in the tree of agents that a run has called, and the
// facts that the recovery of the run needs (recovered_run.hpp).
//
// A place is a path of agents, each with a number that counts the calls of that
// agent by the one above:
//
//   pipeline@1/writer@2      the second call of `writer` in `pipeline`
//   chat@1.1/billing@1       the agent to which `chat` has handed over
//   graph@1/check@3~2/judge@1  below the second attempt of a visit
//
// It is stored in ADK's field `nodeInfo.path`. The other facts are stored in
// `customMetadata.troupe`:
//
//   {"step": word}       the step of the agent that made the event; absent for
//                        the answers of models and the events of custom agents
//   {"answers": true}    a callback has answered in place of the agent
//   {"temp": [name]}     `temp:` keys that were written since the last event of
//                        the same keys; their values are not stored
//   {"lane": place}      place of the lane that has those keys, or that result;
//                        absent for the keys of the run
//   {"items": [value]}   the list of a map
//   {"result": value}    the result that an element of a map has now
//   {"due": number}      the body waits until this time, in microseconds since
//                        1970
//   {"made": [id]}       calls of tools that were made and have no response yet
//   {"caught": [{"place", "code", "message"}]}
//                        failures of agents since the last event of the lane,
//                        which bodies of custom agents may have caught
//   {"traceparent": text, "tracestate": text}
//                        the span that has caused the run, in its message
//   {"recovers": number, "holder": id}
//                        the event claims the run for recovery `number` by the
//                        process with that id

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/models/trace_context.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// The step of an agent that makes an event.
enum class agent_step : std::uint8_t {
  body,         ///< The answer of a model, or an event of a custom agent.
  before_run,   ///< Callbacks before the run.
  after_run,    ///< Callbacks behind the run.
  before_agent, ///< Callbacks before the agent.
  after_agent,  ///< Callbacks behind the agent.
  state,        ///< Changes that the body left; the body has ended.
  pause,        ///< Changes that the body left when it had to wait.
  tools,        ///< Results of tools.
  question,     ///< Question to the user about calls of tools.
  task,         ///< Result of a task that another agent did.
  items,        ///< List of a map.
  failure,      ///< Failure of a lane that did not end its parallel agent.
};

/// Returns `nodeInfo.path` of an event; empty if it has none.
std::string_view path_in(const event& said);

/// Writes place and step of an event, unless it has a path already. An empty
/// place is not written, nor is the number of an attempt at its end.
void set_place(event& said, const std::string& place, agent_step step);

/// Returns the step of an event.
agent_step step_in(const event& said);

/// Marks the answer of a callback in place of an agent.
void mark_answer(event& said);
/// Returns true if the event has that mark.
bool is_answer(const event& said);

/// Names of `temp:` keys without prefix, and the lane that has them.
struct temp_names {
  std::string lane; ///< Empty for the keys of the run.
  std::vector<std::string> names;
};

/// Writes the names of `temp:` keys. No names write nothing.
void set_temp_names(event& said, const temp_names& written);
/// Reads them.
temp_names temp_names_in(const event& said);

/// Writes the span that has caused a run into its message. An empty one writes
/// nothing.
void set_cause(event& message, const trace_context& cause);
/// Reads it. Empty: the message has none, or one that is not valid.
trace_context cause_in(const event& message);

/// Returns `extra` of an event without the facts that differ when its step runs
/// again: those about `temp:` keys and about caught failures, and the time of a
/// wait.
json without_moment(const event& said);

/// Writes a field of `customMetadata.troupe`.
void set_fact(event& said, const char* name, json data);
/// Reads a field of `customMetadata.troupe`; null if there is none. The pointer
/// is valid as long as the event.
const json* fact_in(const event& said, const char* name);

/// Name of the field of calls, and of the field of failures.
inline constexpr const char* made_fact = "made";
inline constexpr const char* caught_fact = "caught";
/// Name of the field of waits.
inline constexpr const char* due_fact = "due";
/// Name of the field of claims.
inline constexpr const char* recovers_fact = "recovers";
/// Name of the field with the place of a lane.
inline constexpr const char* lane_fact = "lane";
/// Names of the fields for maps.
inline constexpr const char* items_fact = "items";
inline constexpr const char* result_fact = "result";

/// Returns the place of an agent that is called below `above`, which may be
/// empty.
std::string place_below(std::string_view above,
                        std::string_view name,
                        std::uint64_t number);

/// Returns the place of the agent that takes over as number `count`, from 1, in
/// the call whose first agent is at `first`.
std::string place_behind(std::string_view first,
                         std::uint64_t count,
                         std::string_view name);

/// Returns the place of an attempt of a visit: what an agent did in an earlier
/// attempt does not count for a later one.
std::string place_of_attempt(const std::string& visit, std::uint64_t attempt);

/// Removes place and facts of an event, which is that of another agent, but for
/// `due_fact`.
void remove_place(event& said);

/// Returns the name of the agent at a place.
std::string_view name_at(std::string_view place);

/// Returns the id under which an event with the id `id` is appended now: that
/// of the event in `live` if it is there; else `id`, after a rewind with `~`
/// and `rewound`. A session takes each id once, even if a rewind has taken the
/// event back.
std::string
placed_id(std::uint64_t rewound, const event_slice& live, std::string id);

/// Returns true if `id` is one that `placed_id` returns for `base`.
bool is_placed(std::string_view id, std::string_view base);

} // namespace troupe
