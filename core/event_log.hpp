// A session's history. One owner appends; any thread reads snapshots, which
// cost O(1).
//
// Invariant: chunks never move, and a slot is written once. A reader holds the
// chunks that it can reach and a range, and never looks beyond the range. A
// history with branches also indexes the events of each branch, so that a lane
// finds its own events quickly.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/ref_counted.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

namespace detail {

struct event_chunk : ref_counted<event_chunk> {
  static constexpr std::size_t capacity = 32;

  std::array<event_ptr, capacity> events;
};

// The chunks in order. The owner writes the slots after the newest event, each
// once. Readers stay below their range's end, so no lock is needed.
struct event_spine : ref_counted<event_spine> {
  explicit event_spine(std::size_t capacity) : chunks(capacity) {}

  std::vector<boost::intrusive_ptr<event_chunk>> chunks;
};

// Positions of the events of each branch, in order. The owner appends
// positions; readers of older slices skip them.
struct branch_index : ref_counted<branch_index> {
  using places = std::vector<std::size_t>;

  mutable std::mutex mutex;
  std::map<std::string, places, std::less<>> by_branch;
};

} // namespace detail

/// A range of a session's events. Immutable, cheap to copy, safe to share
/// between threads. Its elements are `event_ptr`, which are never null: a loop
/// over it, an index, `run::next` and `append_event` give the same type.
class event_slice {
public:
  /// A forward iterator over the events, oldest first. The slice that it came
  /// from must outlive it.
  class iterator {
  public:
    /// Type of an element, for `std::iterator_traits`.
    using value_type = event_ptr;
    /// Type of a distance, for `std::iterator_traits`.
    using difference_type = std::ptrdiff_t;
    /// Type of a dereferenced iterator; elements are read-only.
    using reference = const event_ptr&;
    /// Type of `operator->`; elements are read-only.
    using pointer = const event_ptr*;
    /// Category of the iterator: several passes, forward only.
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;

    /// Makes an iterator at `index` of `slice`, which it keeps by address.
    iterator(const event_slice* slice, std::size_t index)
      : slice_(slice),
        index_(index) {}

    /// Returns the event. The iterator must not be at the end.
    reference operator*() const { return (*slice_)[index_]; }

    /// Gives access to the pointer to the event. The iterator must not be at
    /// the end.
    pointer operator->() const { return &(*slice_)[index_]; }

    /// Moves to the next newer event.
    iterator& operator++() {
      ++index_;
      return *this;
    }

    /// Moves to the next newer event and returns the old position.
    iterator operator++(int) {
      auto before = *this;
      ++index_;
      return before;
    }

    friend bool operator==(const iterator&, const iterator&) = default;

  private:
    const event_slice* slice_ = nullptr;
    std::size_t index_ = 0;
  };

  event_slice() = default;

  /// Number of events in the slice.
  std::size_t size() const noexcept { return last_ - first_; }

  /// Returns true if the slice has no event.
  bool empty() const noexcept { return first_ == last_; }

  /// Returns the event at `index` of the slice; index 0 is the oldest.
  const event_ptr& operator[](std::size_t index) const& noexcept {
    const auto at = first_ + index;
    return spine_->chunks[at / detail::event_chunk::capacity]
      ->events[at % detail::event_chunk::capacity];
  }

  /// Returns a copy of the pointer, as this is a temporary.
  event_ptr operator[](std::size_t index) const&& noexcept {
    return (*this)[index];
  }

  /// Returns the oldest event. The slice must not be empty.
  const event_ptr& front() const& { return (*this)[0]; }

  /// Returns a copy of the pointer, as this is a temporary.
  event_ptr front() const&& { return (*this)[0]; }

  /// Returns the newest event. The slice must not be empty.
  const event_ptr& back() const& { return (*this)[size() - 1]; }

  /// Returns a copy of the pointer, as this is a temporary.
  event_ptr back() const&& { return (*this)[size() - 1]; }

  /// Returns the position of the oldest event.
  iterator begin() const& { return {this, 0}; }

  /// An iterator into a temporary would dangle: keep the slice in a variable.
  iterator begin() const&& = delete;

  /// Returns the position after the newest event.
  iterator end() const& { return {this, size()}; }

  /// An iterator into a temporary would dangle: keep the slice in a variable.
  iterator end() const&& = delete;

  /// Returns the newest `count` events of the slice.
  event_slice recent(std::size_t count) const {
    auto tail = *this;
    if (count < size())
      tail.first_ = last_ - count;
    return tail;
  }

  /// Returns the events from `first` up to, and without, `last`. Requires
  /// `first <= last <= size()`.
  event_slice part(std::size_t first, std::size_t last) const {
    auto cut = *this;
    cut.first_ = first_ + first;
    cut.last_ = first_ + last;
    return cut;
  }

  /// Returns the positions of the events that are visible on `branch`, in
  /// order: those of the branch itself and of its ancestors by dot-separated
  /// segments, the empty branch included. Returns nothing if all events are
  /// visible, as they are on no branch. The cost is proportional to the result.
  std::optional<std::vector<std::size_t>>
  shown_on(std::string_view branch) const;

  /// Returns the events at or after `time`. Compares each event, because
  /// timestamps are data and need not be in order.
  event_slice after(timestamp time) const;

private:
  friend class event_log;

  void merge(const std::vector<std::size_t>& places,
             std::vector<std::size_t>& shown) const;

  boost::intrusive_ptr<const detail::event_spine> spine_;
  // Null if no event has a branch.
  boost::intrusive_ptr<const detail::branch_index> branches_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// A history, held by its owner.
class event_log {
public:
  event_log() = default;
  /// Takes over the history. The other log may then only be destroyed or
  /// assigned to.
  event_log(event_log&&) = default;
  /// Takes over the history; slices of the old one stay valid. The other log
  /// may then only be destroyed or assigned to.
  event_log& operator=(event_log&&) = default;

  /// Appends an event. Amortised O(1).
  void push_back(event_ptr said);

  /// Drops events before the newest `count`, in whole chunks, and returns their
  /// number. O(count / 32), or O(count) with branches. Slices keep their
  /// events.
  std::size_t keep_newest(std::size_t count);

  /// Number of events in memory; dropped events do not count.
  std::size_t size() const noexcept { return all_.last_; }

  /// Returns the event at `index`; index 0 is the oldest event in memory.
  const event_ptr& operator[](std::size_t index) const { return all_[index]; }

  /// Returns all events so far.
  event_slice slice() const { return all_; }

private:
  void index(const std::string& branch);

  boost::intrusive_ptr<detail::event_spine> spine_;
  boost::intrusive_ptr<detail::branch_index> branches_;
  event_slice all_;
};

} // namespace troupe
