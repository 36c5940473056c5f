// The `temp:` keys of a run, or of a lane that has its own. The invocation is
// their only writer, one event at a time; lanes read them.
//
// The keys are not stored. Events name those that were written since the last
// event: a recovery needs the names of those that are lost
// (contexts/lanes/event_place.hpp).

#pragma once

#include "troupe/actors/engine/inbox.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

class temp_space {
public:
  explicit temp_space(scope_state start)
    : state(std::move(start)),
      published_(state.keys()) {}

  /// The keys of a lane whose agent is at `place`. With `keeps_result`, each
  /// event that writes `temp:result` tells the value.
  temp_space(scope_state start, std::string place, bool keeps_result)
    : state(std::move(start)),
      place_(std::move(place)),
      keeps_result_(keeps_result),
      published_(state.keys()) {}

  /// Thread-safe.
  state_map read() const {
    const std::lock_guard guard(mutex_);
    return published_;
  }

  /// Place of the agent whose lane has the keys; empty for those of the run.
  const std::string& place() const noexcept { return place_; }

  /// True if events tell the result of an element of a map.
  bool keeps_result() const noexcept { return keeps_result_; }

  // -- on the invocation's thread only ----------------------------------------

  /// Makes the judged operations visible.
  void install() {
    state.install();
    const std::lock_guard guard(mutex_);
    published_ = state.keys();
  }

  /// Notes the names of the keys in `share`.
  void note_names();

  /// Writes the value of `result` into an event with `share`, if events tell
  /// it. Returns true if the event has it then.
  bool tell_result(event& said);

  /// Writes the noted names into an event.
  void tell_names(event& said) const;

  /// Forgets the names that a stored event tells.
  void forget_names(const event& stored);

  scope_state state;
  /// The event under way that carries `temp:` keys, and its operations on them.
  emit_request* under_way = nullptr;
  delta share;
  /// Events (`emit` letters) with `temp:` keys that wait for the one under way.
  letter_list waiting;

private:
  const std::string place_;
  const bool keeps_result_ = false;
  std::vector<std::string> untold_; // Names that no stored event has told.
  mutable std::mutex mutex_;
  state_map published_;
};

} // namespace troupe::actors
