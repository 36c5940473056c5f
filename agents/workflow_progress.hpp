// The progress of the workflows of a session, computed from its events.
//
//   workflow_progress seen(agent);
//   for (const auto& each : session.events())
//     seen.add(each).value();
//   for (const auto& each : seen.workflows())
//     for (const auto& node : each.nodes)
//       fmt::print("{} {}\n", node.name, to_string(node.state));
//
// A run follows the same rules when it decides which visits start, so the
// result after each event is the one that the run itself has.

#pragma once

#include "troupe/agents/workflow.hpp"
#include "troupe/contexts/run_options.hpp"
#include "troupe/core/event_log.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

class workflow_fold;

/// State of a node, of one of its visits, or of a workflow.
enum class node_state : std::uint8_t {
  unreached, ///< No edge to the node was followed yet.
  waiting,   ///< Waits for a time, a free lane, its next attempt, or, as a
             ///< join, for other inputs.
  running,   ///< Runs.
  paused,    ///< Its agent, function or tool waits for an answer. A map: all
             ///< items that have not ended do.
  done,      ///< Has ended.
  skipped,   ///< Was not reached, and can no longer be.
  failed,    ///< Has failed and is not tried again.
  cancelled, ///< Was stopped: another node or the node around the workflow
             ///< failed, or a fork closed its questions.
};

/// Returns the name of the state, such as `"running"`.
std::string_view to_string(node_state state) noexcept;

/// An attempt that has failed.
struct failed_attempt {
  /// Number of the attempt, from 1.
  std::uint64_t attempt = 1;
  /// Time of its event.
  timestamp at{};
  /// Its error.
  error why{errc::internal, ""};
};

/// One visit of a node.
struct visit_progress {
  /// Name of the node.
  std::string node;
  /// Number of the visit among those of the node, from 1.
  std::uint64_t number = 1;
  /// `waiting`, `running`, `paused`, `done`, `failed` or `cancelled`.
  node_state state = node_state::running;
  /// Number of the attempt that runs, is next, or was the last one.
  std::uint64_t attempt = 1;
  /// Failed attempts, oldest first.
  std::vector<failed_attempt> failures = {};
  /// Routes that the visit gave.
  std::vector<route> routes = {};
  /// Nodes without whose inputs a join has fired.
  std::vector<std::string> missing = {};
  /// For `failed`: the workflow has gone on (`join::on_failed`).
  bool is_skipped = false;
  /// Number of items of a map, once an event tells it; else 0.
  std::uint64_t items = 0;
  /// Number of those that have ended.
  std::uint64_t items_ended = 0;
  /// Time of the event after which the visit could start; unset if it waits, or
  /// if the time is not known.
  std::optional<timestamp> began = {};
  /// Time of the event that ended it, or of its last failure.
  std::optional<timestamp> ended = {};
  /// Of a waiting visit: the time until which its function waits, or the latest
  /// time at which its next attempt begins, if a lane is free.
  std::optional<timestamp> due = {};
};

/// A node of a workflow that runs or has run.
struct node_progress {
  /// Name of the node.
  std::string name;
  /// `"agent"`, `"function"`, `"tool"`, `"join"` or `"map"`.
  std::string kind;
  /// That of its oldest visit that has not ended, else of its newest one.
  node_state state = node_state::unreached;
  /// Number of visits, also of those that wait.
  std::uint64_t visits = 0;
  /// Place in `workflow_view::visits` of the visit that `state` is of; unset
  /// if there is none.
  std::optional<std::size_t> visit = {};
};

/// A workflow that runs or has run, after the events up to now.
struct workflow_view {
  /// Name of the workflow.
  std::string name;
  /// Its path in the events, such as `letters@1`. Unique together with `run`.
  std::string path;
  /// Id of the invocation in which it began.
  std::string run;
  /// Ids of all invocations that it has events of, oldest first.
  std::vector<std::string> invocations;
  /// Path of the visit that it is part of; empty if it is part of none.
  std::string parent;
  /// `running`, `paused`, `done`, `failed` or `cancelled`. A run that was
  /// cancelled or killed leaves no event, so its workflows stay `running`.
  node_state state = node_state::running;
  /// Reason of `failed`, if it is known.
  std::optional<error> failure;
  /// `errc::conflict`: the events do not fit the workflow of the program. The
  /// nodes are then those that the events name.
  std::optional<error> conflict;
  /// Time of its first event.
  timestamp began{};
  /// Time of its last event; unset until it has ended.
  std::optional<timestamp> ended;
  /// The nodes, in the order of the workflow.
  std::vector<node_progress> nodes;
  /// The edges, in the order of the workflow. Empty if they are not known.
  std::vector<workflow_edge> edges;
  /// The visits, in the order of their starts; those that wait come last.
  std::vector<visit_progress> visits;
};

/// `{"name", "path", "run", "invocations": [text], "parent": text or null,
/// "state", "failure": text or null, "conflict": text or null, "began":
/// seconds, "ended": seconds or null, "nodes": [{"name", "kind", "state",
/// "visits": number, "visit": place or null}], "edges": [{"from", "to",
/// "routes": [route], "otherwise": boolean}], "visits": [{"node", "number",
/// "state", "attempt", "failures": [{"attempt", "at": seconds, "code",
/// "message"}], "routes": [route], "missing": [text], "began", "ended", "due":
/// seconds or null, "skipped"?: true, "items"?: number, "itemsEnded"?:
/// number}]}`.
json to_json(const workflow_view& shown);

/// Computes the progress of all workflows of one session, event by event. Not
/// thread-safe. The work grows with the number of events; a rewind repeats it
/// for the events before.
///
/// A visit runs as soon as the schedule may start it, unless as many nodes run
/// as `workflow_options::lanes_max` and `run_options::lanes_max` allow. A
/// paused visit, and one that waits for its next attempt, takes no lane. No
/// event tells that a wait, also one before an attempt, is over: the visit is
/// `waiting` until its next event, unless `node_retry::first_delay` is 0. `due`
/// is the latest time at which the wait ends. If
/// several nodes fail at nearly the same time below a limit of lanes, the
/// events do not tell the order of the next starts: `running` and `waiting` may
/// then be exchanged between visits until one of them ends.
class workflow_progress {
public:
  /// Takes the nodes and edges from the events. Limits of lanes and rules for
  /// failures are not in them: no visit waits, and a failed attempt is `failed`
  /// until the next event of its visit.
  workflow_progress();

  /// Takes the workflows of `root` and everything below it. `lanes_max` is that
  /// of the run's options.
  explicit workflow_progress(agent root,
                             std::size_t lanes_max = run_options().lanes_max);

  ~workflow_progress();
  /// Takes the workflows over. A moved-from object can only be assigned to or
  /// destroyed.
  workflow_progress(workflow_progress&&) noexcept;
  /// Takes the workflows over. The other object can then only be assigned to or
  /// destroyed.
  workflow_progress& operator=(workflow_progress&&) noexcept;

  /// Adds the next event of the session, which is not null: the events of a
  /// stored session, or those that a `follower` delivers, from the beginning of
  /// a run on. Events that tell nothing about workflows are ignored, as are
  /// streamed pieces.
  ///
  /// Fails with `errc::conflict` if the events do not fit the workflow of the
  /// agent, since it was changed, and names the difference. Later events may
  /// still be added; the workflow is then shown as the events tell it.
  result<void> add(const event_ptr& said);

  /// Returns the workflows, in the order in which they began. Those that a
  /// rewind has taken back are left out.
  std::vector<workflow_view> workflows() const;

private:
  std::unique_ptr<workflow_fold> fold_;
};

} // namespace troupe
