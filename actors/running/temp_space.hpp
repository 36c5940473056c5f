// The `temp:` keys of a run, or of a lane that has its own. The invocation is
// their only writer, one event at a time; lanes read them.

#pragma once

#include "troupe/actors/engine/inbox.hpp"
#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/support/scope_state.hpp"

#include <mutex>
#include <utility>

namespace troupe::actors {

class temp_space {
public:
  explicit temp_space(scope_state start)
    : state(std::move(start)),
      published_(state.keys()) {}

  /// Thread-safe.
  state_map read() const {
    const std::lock_guard guard(mutex_);
    return published_;
  }

  // -- on the invocation's thread only ----------------------------------------

  /// Makes the judged operations visible.
  void install() {
    state.install();
    const std::lock_guard guard(mutex_);
    published_ = state.keys();
  }

  scope_state state;
  /// The event under way that carries `temp:` keys, and its operations on them.
  emit_request* under_way = nullptr;
  delta share;
  /// Events (`emit` letters) with `temp:` keys that wait for the one under way.
  letter_list waiting;

private:
  mutable std::mutex mutex_;
  state_map published_;
};

} // namespace troupe::actors
