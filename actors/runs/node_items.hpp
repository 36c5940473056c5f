// The items of a map's visit: which of them have ended, and the lanes that run
// the others (actors/runs/fan_out).
//
// An item is a visit of the same node below the visit of the map
// (agents/turns/node_event.hpp), so it ends with an event of its own. The
// session's events alone tell which items have ended: a later attempt, a run
// that brings an answer and a recovered run read them.

#pragma once

#include "troupe/actors/runs/node_body.hpp"

#include <cstddef>
#include <optional>
#include <vector>

namespace troupe::actors {

/// The items of a map's input: those of a list, none for null, else the value
/// itself.
json items_in(const json& input);

/// The items whose ends the session has.
class ended_items {
public:
  /// Reads the events of the items of `map`, of which there are `count`.
  ended_items(const event_slice& events,
              const node_visit& map,
              std::size_t count);

  bool has(std::size_t index) const { return outputs_[index].has_value(); }

  /// Returns true if one of them escalated.
  bool has_escalated() const noexcept { return has_escalated_; }

  /// Returns the outputs as a list. Throws `errc::conflict` if one is missing:
  /// a plugin has removed the fields of its event.
  json outputs(const node_visit& map) const;

private:
  std::vector<std::optional<json>> outputs_;
  bool has_escalated_ = false;
};

/// Runs the items that have not ended on lanes of their own. Throws the error
/// of the first item that failed, with its number. Returns a checkpoint if
/// items have to wait for answers, and no other item can go on. The arguments
/// outlive the call.
task<agent_end> run_items(lane_actor& lane,
                          const node_visit& map,
                          const json& items,
                          const ended_items& before);

} // namespace troupe::actors
