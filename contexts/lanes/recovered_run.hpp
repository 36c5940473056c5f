// The events that a run had committed when its process ended, by the places of
// its agents (event_place.hpp). A recovered run calls its agents again in the
// same order; each of them finds here whether it has ended, or where it was.

#pragma once

#include "troupe/contexts/lanes/event_place.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/event_log.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Never changes, so all lanes of a run may read it.
class recovered_run {
public:
  /// Reads the events of run `invocation` among `events`, but for its message
  /// and the claims of its recoveries.
  recovered_run(const event_slice& events, std::string_view invocation);

  /// The events of one place and of all places below it. Numbers count the
  /// events of the run from 1.
  struct part {
    /// The events of the place itself, oldest first, and their numbers.
    std::vector<event_ptr> own;
    std::vector<std::uint64_t> numbers;
    /// Number of the first and of the last event. The events of agents that had
    /// to wait (`agent_step::pause`) do not count as the last one.
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    /// True if the agent ended with an escalation, in its own events or below.
    /// Agents below that failed do not count.
    bool has_escalated = false;
    /// Places directly below, in the order of their first events.
    std::vector<std::string> below;
    /// Places of the agents to which those handed over.
    std::vector<std::string> behind;

    /// Returns true if the place has an event of this step.
    bool has(agent_step step) const;
  };

  /// Returns the events at a place and below; null if there are none.
  const part* at(std::string_view place) const;

  /// Returns the number of the last event of the call whose first agent was at
  /// `first`, with those of the agents to which it handed over; 0 if there is
  /// none.
  std::uint64_t last_of_call(std::string_view first) const;

  /// Returns true if the agent at `above` has gone on after its call of the
  /// agent at `first`: it has later events. Requires that it calls agents one
  /// after another.
  bool has_gone_on(std::string_view above, std::string_view first) const;

  /// Returns the number of the event with this id; 0 if there is none.
  std::uint64_t number_of(const std::string& id) const;

  /// Returns the largest number at the end of an id that begins with `key` and
  /// a slash; 0 if there is none.
  std::uint64_t last_numbered(const std::string& key) const;

  /// Returns the failure of the agent at a place that the agent above has
  /// caught; null if there is none.
  const error* caught_at(std::string_view place) const;

  /// Returns the last event with visible text at a place and below on a branch;
  /// null if there is none.
  event_ptr last_said(std::string_view place, std::string_view branch) const;

  /// Returns the newest result that the events tell for an element of a map
  /// (`result_fact`), whose lane is at `place`; unset if there is none.
  std::optional<json> result_at(const std::string& place) const;

  /// Returns the place of the agent that the run began with; empty if it has no
  /// event.
  const std::string& start() const noexcept { return start_; }

  /// Returns the events that belong to no agent, of callbacks around the run.
  const std::vector<event_ptr>& outside() const noexcept { return outside_; }

  /// Returns the `temp:` keys that were written in a lane (`temp_names`).
  std::vector<std::string> temp_names_of(const std::string& lane) const;

private:
  void add(const event_ptr& said);
  void note_escalations();
  bool has_failed(std::string_view place) const;

  std::unordered_map<std::string, part> parts_;
  std::unordered_map<std::string, std::uint64_t> calls_;
  std::unordered_map<std::string, event_ptr> said_;
  std::unordered_map<std::string, event_ptr> results_; // By lane.
  std::unordered_map<std::string, std::uint64_t> by_id_;
  std::unordered_map<std::string, std::uint64_t> numbered_; // By key.
  std::unordered_map<std::string, error> caught_;           // By place.
  std::map<std::string, std::vector<std::string>> temp_;
  std::vector<event_ptr> outside_;
  std::string start_;
  std::uint64_t last_ = 0;
};

} // namespace troupe
