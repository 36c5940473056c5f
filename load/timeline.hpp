// What the agents of a run did when, read from the log of its session.
//
// Events of runs with `run_options::step_times` say when their models and tools
// worked. Of others only the ends of steps are known: what lies between an
// event and the one before it on its branch counts as one step.

#pragma once

#include "troupe/core/session.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

struct timeline_step {
  enum class form : std::uint8_t {
    model, ///< A model worked.
    tool,  ///< A tool worked.
    other, ///< The agent itself, or what its event does not tell apart.
    wait,  ///< For a place, a store, or whatever else came before the work.
  };

  form kind = form::other;
  std::string name; ///< Of the model or tool.
  /// Since the start of the invocation.
  std::chrono::nanoseconds begin{};
  std::chrono::nanoseconds end{};
  std::string event; ///< The id of the event that tells it.
  std::string detail;
  std::string error; ///< An error code, or empty.
};

/// What one agent did on one branch.
struct timeline_lane {
  std::string agent;
  std::string branch;
  std::vector<timeline_step> steps; ///< By their beginnings.
};

/// One invocation, from the user's message to its last event.
struct timeline {
  std::string invocation;
  timestamp started{};
  std::chrono::nanoseconds wall{};
  /// Of all steps but waits, added up.
  std::chrono::nanoseconds work{};
  /// Work that had to be done one after the other: that of the root branch, and
  /// of the lane of each fan-out that worked longest, and so on below. A
  /// fan-out that runs again counts again.
  std::chrono::nanoseconds longest_lane{};
  std::size_t longest_lane_model_calls = 0;
  /// On lanes of the run; what an agent that is a tool asks is in the step of
  /// that tool.
  std::size_t model_calls = 0;
  std::size_t tool_calls = 0;
  /// What the events that use tokens say they used, in total.
  std::uint64_t tokens = 0;
  /// Of the last event, or empty.
  std::string error;
  std::vector<timeline_lane> lanes; ///< Those of a fan-out together.
};

/// Of the events of a session, an invocation each, oldest first. Events without
/// an invocation are left out.
std::vector<timeline> timelines_of(const event_slice& events);

/// A row per lane, `width` columns in all, at least 40.
std::string to_text(const timeline& shown, std::size_t width);

/// `{"invocation", "startedAt": seconds, "wall", "work", "longestLane",
/// "modelCalls", "toolCalls", "tokens", "error": text or null, "lanes":
/// [{"agent", "branch", "steps": [{"kind": "model"|"tool"|"other"|"wait",
/// "name", "start", "end", "event", "detail": text or null, "error": text or
/// null}]}]}`, times in nanoseconds.
json to_json(const timeline& shown);

} // namespace troupe::load
