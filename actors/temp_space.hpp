// The `temp:` keys of a run, or of a lane that has its own.
//
// The invocation is their only writer, one event at a time; lanes read them.

#pragma once

#include "troupe/actors/inbox.hpp"
#include "troupe/contexts/lane_host.hpp"
#include "troupe/core/scope_state.hpp"

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

  // -- of the invocation's thread alone

  /// Makes what was judged visible.
  void install() {
    state.install();
    const std::lock_guard guard(mutex_);
    published_ = state.keys();
  }

  scope_state state;
  /// The event under way that carries keys, and its share.
  emit_request* under_way = nullptr;
  delta share;
  /// Letters of kind emit that wait for it.
  letter_list waiting;

private:
  mutable std::mutex mutex_;
  state_map published_;
};

} // namespace troupe::actors
