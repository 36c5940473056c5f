// The newest events of a session, by their numbers. Older events are in the
// store only.

#pragma once

#include "troupe/core/event_log.hpp"

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Events are numbered from 1. Not thread-safe; slices are.
class event_window {
public:
  event_window() = default;

  /// `newest` are the events up to number `revision`.
  event_window(std::uint64_t revision, std::vector<event_ptr> newest)
    : log_(revision - newest.size()) {
    for (auto& each : newest)
      log_.push_back(std::move(each));
  }

  /// All events of a fork, which begins with these.
  explicit event_window(const event_slice& past) : log_(past) {}

  /// Number of the newest event; 0 if there is none.
  std::uint64_t revision() const noexcept { return before() + log_.size(); }

  /// Number of the events that are older than all in the window.
  std::uint64_t before() const noexcept { return log_.before(); }

  bool has(std::uint64_t number) const noexcept {
    return number > before() && number <= revision();
  }

  /// The event with this number, which the window has.
  const event_ptr& at(std::uint64_t number) const {
    assert(has(number));
    return log_[number - before() - 1];
  }

  event_slice slice() const { return log_.slice(); }

  std::uint64_t newest_rewind() const noexcept { return log_.newest_rewind(); }

  void push_back(event_ptr said) { log_.push_back(std::move(said)); }

  /// Adds the events directly before the window.
  void add_older(std::vector<event_ptr> older) {
    assert(older.size() <= before());
    const auto newest = std::exchange(log_, event_log(before() - older.size()));
    for (auto& each : older)
      log_.push_back(std::move(each));
    for (std::size_t index = 0; index < newest.size(); ++index)
      log_.push_back(newest[index]);
  }

  /// Drops events that are older than the newest `count`, in whole chunks.
  void keep_newest(std::size_t count) { log_.keep_newest(count); }

private:
  event_log log_;
};

} // namespace troupe::actors
