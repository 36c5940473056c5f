// The progress of the workflows of a session, event by event. Internal.
//
// Each workflow of the session has its own schedule, which gets the ends of its
// visits in the order of the session. So the schedule is that of the run, and
// it tells which visits run and wait.

#pragma once

#include "troupe/agents/graphs/recorded.hpp"
#include "troupe/agents/graphs/schedule.hpp"
#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/workflow_progress.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe {

/// The workflows of a session, as `workflow_progress` describes them. Not
/// thread-safe.
class workflow_fold {
public:
  /// Takes the workflows of `root`, or, if it is unset, those that the events
  /// describe.
  workflow_fold(std::optional<agent> root, std::size_t lanes_max)
    : root_(std::move(root)),
      lanes_max_(lanes_max) {
    if (root_)
      know(*root_);
  }

  /// As `workflow_progress::add`.
  result<void> add(const event_ptr& said);

  /// As `workflow_progress::workflows`.
  std::vector<workflow_view> workflows() const;

private:
  // Place of a visit: of its workflow, and of the visit in it.
  struct visit_place {
    std::size_t workflow;
    std::size_t visit;

    friend auto operator<=>(const visit_place&, const visit_place&) = default;
  };

  struct answered_call {
    std::string id;
    visit_place where;
    std::uint64_t item; // As in `visit::asks`.
  };

  using number = workflow_graph::number;

  struct visit {
    visit_progress shown;
    number node = 0; // Of the schedule.
    std::string branch;
    bool is_planned = true; // The schedule has started it.
    bool is_active = true;
    bool has_lane = false;
    bool is_due = false;    // Its next attempt needs a lane.
    bool is_asleep = false; // Its function waits for a time, on its lane.
    // Ids of its open calls, with the number of the item that asks; 0: none.
    std::map<std::string, std::uint64_t> asks;
    std::set<std::uint64_t> items_over; // Numbers of ended items of a map.
    std::vector<std::size_t> children;  // Workflows that it began.
  };

  struct instance {
    workflow_place at;
    std::string name;
    std::string branch;
    std::vector<std::string> invocations;
    std::optional<visit_place> parent;
    timestamp began;
    std::optional<timestamp> ended;
    std::optional<error> failure;
    std::string failed_in; // Invocation of `failure`.
    std::optional<error> conflict;
    bool is_done = false;
    bool is_cancelled = false;
    const agent* known = nullptr; // The workflow of the program.
    recorded_graph recorded;
    const workflow_graph* graph = nullptr;       // Null if no graph is known.
    std::unique_ptr<workflow_schedule> schedule; // With `graph`.
    std::size_t lanes_max = SIZE_MAX;
    std::vector<visit> visits;
    std::unordered_map<std::string, std::size_t> places; // By `node@number`.
    std::vector<std::uint64_t> started;                  // Number, by node.
    std::deque<std::size_t> due; // Visits that were due, oldest first.
    std::size_t lanes = 0;       // Number of visits with a lane.
  };

  // -- events ----
  void know(const agent& which);
  void clear();
  void rewind(std::uint64_t count);
  result<void> take(const event& said);
  result<void> take(const workflow_record& told, const event& said);
  result<void> begin(const workflow_record& told, const event& said);
  void end(instance& on, const workflow_record& told, const event& said);
  void take_item(instance& on,
                 const workflow_record& visit,
                 const workflow_record& told,
                 const event& said);
  void go_on_behind(instance& on, const result<void>& left, const event& said);
  static void end_by(instance& on, error why, const event& said);
  void fail(instance& on, const workflow_record& told, const event& said);
  void close(instance& on, const event& said);
  void begin_wait(const event& said);
  void end_wait(const event& said);
  void take_calls(const event& said);
  void ask(const visit_place& where, std::uint64_t item, const event& said);
  static bool is_waiting(const visit& which);
  std::uint64_t item_of(const visit_place& where, const event& said) const;
  void reopen(const std::string& message);
  void reopen_around(instance& inner);
  void cancel_paused(const event& said);

  // -- visits ----
  result<void> use_graph(instance& on, const json& structure);
  void use_recorded(instance& on, const json& structure);
  static void forget_graph(instance& on, const std::string& why);
  std::size_t open(instance& on, const workflow_visit& from);
  std::size_t open_unplanned(instance& on, const workflow_record& told);
  std::size_t place_of(instance& on, const workflow_record& told, timestamp at);
  void lend(instance& on, visit& to);
  void run(instance& on, visit& again);
  void take_back(instance& on, visit& from);
  void activate(instance& on, std::size_t which);
  void finish(instance& on, std::size_t which, node_state state, timestamp at);
  void fill(instance& on, timestamp at);
  void advance(instance& on, const event& said);
  void go_on_after_failure(instance& on, const event& said);
  void cancel_children(visit& of, timestamp at);

  std::size_t index_of(const instance& on) const {
    return static_cast<std::size_t>(&on - workflows_.data());
  }

  std::optional<visit_place> parent_of(const workflow_place& at) const;
  std::optional<visit_place> asking(const event& said) const;
  bool holds(const visit_place& where, const std::string& author) const;

  // -- views ----
  void show_visits(const instance& on, workflow_view& made, bool is_dead) const;
  void show_nodes(const instance& on, workflow_view& made) const;
  static node_state
  state_of(const instance& on, const workflow_view& made, bool is_dead);

  const std::optional<agent> root_;
  const std::size_t lanes_max_;
  // By name: agents below an agent, and workflows.
  std::map<std::string, const agent*> known_;
  std::map<std::string, std::string> above_; // Names of agents, by name.

  std::uint64_t count_ = 0; // Events.
  // Events about workflows, with their numbers; and rewinds, with the numbers
  // of events that they take back.
  std::vector<std::pair<std::uint64_t, event_ptr>> kept_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> rewinds_;

  std::vector<instance> workflows_;
  std::map<std::pair<std::string, std::string>, std::size_t> by_path_;
  std::map<std::pair<std::string, std::string>, visit_place> visits_by_path_;
  std::map<std::string, std::set<visit_place>, std::less<>> by_branch_;
  std::unordered_map<std::string, visit_place> asks_; // By id of the call.
  // Calls that a message has answered, by the id of the message.
  std::unordered_map<std::string, std::vector<answered_call>> answered_;
};

} // namespace troupe
