// Timelines of the agents of a run, read from the log of its session.
//
// Events of runs with `run_options::step_times` record when their models and
// tools worked. In other runs only the ends of steps are known: the time
// between an event and the one before it on its branch counts as one step.

#pragma once

#include "troupe/agents/workflow_progress.hpp"
#include "troupe/core/session.hpp"
#include "troupe/load/prices.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// One step of an agent.
struct timeline_step {
  /// Kind of a step.
  enum class form : std::uint8_t {
    model, ///< A model worked.
    tool,  ///< A tool worked.
    other, ///< The agent itself, or an unknown mix.
    wait,  ///< Waited for a slot, a store or other work.
  };

  /// Kind of this step.
  form kind = form::other;
  /// Name of the model or tool. Names of several tools in one step are joined
  /// by `, `. Empty if it is unknown.
  std::string name;
  /// Time since the start of the invocation.
  std::chrono::nanoseconds begin{};
  /// Time since the start of the invocation.
  std::chrono::nanoseconds end{};
  std::string event; ///< Id of the event that records the step.
  /// Names of the called tools, as `calls NAME, NAME`; empty if there are none.
  std::string detail;
  std::string error; ///< An error code, or empty.
};

/// The steps of one agent on one branch.
struct timeline_lane {
  /// Author of the events.
  std::string agent;
  /// Branch of the events; empty for the root branch.
  std::string branch;
  std::vector<timeline_step> steps; ///< Ordered by beginning.
};

/// One invocation, from the user's message to its last event.
struct timeline {
  /// Id of the invocation.
  std::string invocation;
  /// Id of the invocation in which its work began (`first_invocation` of its
  /// first event): `invocation`, unless it went on from a pause.
  std::string first_invocation;
  /// The earliest time of its events.
  timestamp started{};
  /// Time from `started` until the last event or the end of the last step.
  std::chrono::nanoseconds wall{};
  /// Sum of the durations of all model and tool steps, also of those at the
  /// same time. Steps of kind `other` count only if no event of the invocation
  /// records times.
  std::chrono::nanoseconds work{};
  /// Work that had to be done one step after the other: that of the root
  /// branch, plus in each fan-out that of the lane with the most work, and so
  /// on below. A fan-out that runs again counts again. Steps of one lane at the
  /// same time count once. Kinds of steps count as in `work`.
  std::chrono::nanoseconds longest_lane{};
  /// Model calls on those lanes.
  std::size_t longest_lane_model_calls = 0;
  /// True if events of the invocation record their model and tool calls
  /// (`run_options::step_times`). Without it no call is counted.
  bool calls_recorded = false;
  /// Calls on lanes of the run. Calls inside an agent that is a tool belong to
  /// the step of that tool.
  std::size_t model_calls = 0;
  /// Tool calls on lanes of the run.
  std::size_t tool_calls = 0;
  /// Sum of `usageMetadata.totalTokenCount` over the events.
  std::uint64_t tokens = 0;
  /// Cost of the model calls of the events, as far as their models have prices;
  /// unset without prices.
  std::optional<cost_sum> cost = {};
  /// Currency of `cost`.
  std::string currency = {};
  /// Error code of the last event, or empty.
  std::string error;
  /// True if a rewind of the session has taken back all events of the
  /// invocation.
  bool is_taken_back = false;
  std::vector<timeline_lane> lanes; ///< Lanes of a fan-out together.
  /// The workflows that have events of the invocation, as the log alone tells
  /// them, in the order in which they began.
  std::vector<workflow_view> workflows = {};
};

/// The kind of a step as reports name it: `"model"`, `"tool"`, `"other"` or
/// `"wait"`.
std::string_view name_of(timeline_step::form kind);

/// The agent's name; of a lane of a map also the index of its element,
/// `"NAME [0]"`.
std::string name_of(const timeline_lane& lane);

/// Number of fan-outs above the lane.
std::size_t depth_of(const timeline_lane& lane);

/// One timeline for each invocation in `events`, oldest first. Events without
/// an invocation, and rewinds, are left out. With `prices`, each has a cost.
std::vector<timeline> timelines_of(const event_slice& events,
                                   const price_list* prices = nullptr);

/// Returns a summary, a row for each lane, and a row for each visit and each
/// failed attempt of workflows. `width` is the total number of
/// columns; less than 40 counts as 40.
std::string to_text(const timeline& shown, std::size_t width);

/// `{"invocation", "firstInvocation", "startedAt": seconds, "wall", "work",
/// "longestLane", "modelCalls", "toolCalls", "tokens", "cost": cost or null,
/// "error": text or null, "takenBack": boolean, "lanes": [{"agent", "branch",
/// "steps": [{"kind": "model"|"tool"|"other"|"wait", "name", "start", "end",
/// "event", "detail": text or null, "error": text or null}]}], "workflows":
/// [workflow_view]}`, times in nanoseconds except those of workflows. The
/// numbers of calls are null if they are not recorded.
json to_json(const timeline& shown);

} // namespace troupe::load
