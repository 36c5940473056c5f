// A session's history. One owner appends; any thread reads snapshots, which
// cost O(1).
//
// Invariant: chunks never move, and a slot is written once. A reader holds the
// chunks that it can reach and a range, and never looks beyond the range. A
// history with branches also indexes the events of each branch, so that a lane
// finds its own events quickly. A history with rewinds (core/rewind.hpp) keeps
// their numbers, and the ranges of events that are hidden after the newest one:
// holes. A fork shares the chunks and the indexes of its parent's history.

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
  event_spine(std::uint64_t older, std::size_t capacity)
    : before(older),
      chunks(capacity) {}

  const boost::intrusive_ptr<event_chunk>&
  chunk(std::size_t number) const noexcept {
    const auto* part = this;
    while (number < part->shared)
      part = part->past.get();
    return part->chunks[number - part->shared];
  }

  // Number of the session's events before the first slot.
  const std::uint64_t before;
  // The chunks after those that are shared.
  std::vector<boost::intrusive_ptr<event_chunk>> chunks;
  // Of a fork: the first `shared` chunks are those of `past`.
  boost::intrusive_ptr<const event_spine> past;
  std::size_t shared = 0;
  std::size_t depth = 0; // Number of spines that `past` leads to.
};

// Ranges of events that a slice hides, by their numbers in the session. Never
// changes once a slice has it. A rank is the number of events before an event
// that are not hidden.
struct event_holes : ref_counted<event_holes> {
  struct hole {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t rank = 0; // Of the next event that is not hidden.
  };

  std::uint64_t rank_of(std::uint64_t number) const noexcept;
  std::uint64_t number_at(std::uint64_t rank) const noexcept;

  // The hole with this event; null if the event is not hidden.
  const hole* around(std::uint64_t number) const noexcept;

  // Hides the events from `first` to `last`, which are behind all holes.
  void add(std::uint64_t first, std::uint64_t last);

  std::vector<hole> holes; // In order; they do not touch.
};

// The rewinds of a history, in order. Never changes once a slice has it.
struct rewind_index : ref_counted<rewind_index> {
  using holes_ptr = boost::intrusive_ptr<const event_holes>;

  // An event that is a rewind, and the first event that it takes back.
  struct rewind {
    std::uint64_t number = 0;
    std::uint64_t first = 0;
  };

  // The holes after event `number`; null if there are none. O(1) for the newest
  // event.
  holes_ptr holes_at(std::uint64_t number) const;

  std::vector<rewind> rewinds; // Not empty.
  holes_ptr newest;            // After the last of them.
};

// Positions of the events of each branch, in order. The owner appends
// positions; readers of older slices skip them.
struct branch_index : ref_counted<branch_index> {
  using places = std::vector<std::size_t>;

  mutable std::mutex mutex;
  std::map<std::string, places, std::less<>> by_branch;
  // Of a fork: positions below `shared` are in `past`.
  boost::intrusive_ptr<const branch_index> past;
  std::size_t shared = 0;
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
  std::size_t size() const noexcept {
    return holes_ ? shown_before(last_) - shown_before(first_) : last_ - first_;
  }

  /// Returns true if the slice has no event.
  bool empty() const noexcept { return size() == 0; }

  /// Returns the event at `index` of the slice; index 0 is the oldest.
  const event_ptr& operator[](std::size_t index) const& noexcept {
    return at(place_of(index));
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
    if (const auto all = size(); count < all)
      tail.first_ = place_of(all - count);
    return tail;
  }

  /// Returns the events from `first` up to, and without, `last`. Requires
  /// `first <= last <= size()`.
  event_slice part(std::size_t first, std::size_t last) const {
    auto cut = *this;
    cut.first_ = place_of(first);
    cut.last_ = place_of(last);
    return cut;
  }

  /// Returns the events that no rewind in the slice has taken back, without
  /// the rewinds themselves (core/rewind.hpp). This is the conversation as
  /// models and agents read it. O(1) without rewinds, else O(log n).
  event_slice live() const;

  // -- numbers of events in their session -------------------------------------

  /// Returns the number of the event at `index` in its session; the first event
  /// of a session is number 1. Slices of a session or of a context know it;
  /// for a log that was made otherwise, its first event is number 1.
  std::uint64_t number(std::size_t index) const noexcept {
    return number_at(place_of(index));
  }

  /// Returns the number where the slice begins: that of its first event, or, in
  /// a slice of `live`, of the first of the events before it that were taken
  /// back. Continue with the events before this number to read older ones.
  std::uint64_t first_number() const noexcept;

  /// Returns true if the slice leaves out event `number`, as that was taken
  /// back.
  bool hides(std::uint64_t number) const noexcept {
    return holes_ && holes_->around(number) != nullptr;
  }

  /// Returns the number of the newest rewind that the log had when the slice
  /// was taken; 0 if there was none.
  std::uint64_t newest_rewind() const noexcept {
    return rewinds_ ? rewinds_->rewinds.back().number : 0;
  }

  /// Number of events from the first to the last number of the slice: those
  /// that `live` leaves out count.
  std::size_t span() const noexcept { return last_ - first_; }

  /// Returns the events of the slice from this number on.
  event_slice from(std::uint64_t number) const noexcept;

  /// Returns the events of the slice before this number.
  event_slice before(std::uint64_t number) const noexcept;

  /// Returns the number of the event that is `count` events before event
  /// `number`, or of the first one. Events that are older than all in the slice
  /// count as shown, except those that a rewind in the slice has taken back.
  std::uint64_t count_back(std::uint64_t number,
                           std::uint64_t count) const noexcept;

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

  // A place is a position in the spine.
  const event_ptr& at(std::size_t place) const noexcept {
    return spine_->chunk(place / detail::event_chunk::capacity)
      ->events[place % detail::event_chunk::capacity];
  }

  std::uint64_t number_at(std::size_t place) const noexcept {
    return (spine_ ? spine_->before : 0) + place + 1;
  }

  std::size_t shown_before(std::size_t place) const noexcept {
    return holes_->rank_of(number_at(place));
  }

  std::size_t place_of(std::size_t index) const noexcept {
    return holes_ ? shown_place_of(index) : first_ + index;
  }

  std::size_t shown_place_of(std::size_t index) const noexcept;
  std::size_t place_of_number(std::uint64_t number) const noexcept;
  template <class Predicate>
  event_slice without(const Predicate& is_hidden) const;
  void merge(std::string_view branch, std::vector<std::size_t>& shown) const;
  void merge(const std::vector<std::size_t>& places,
             std::size_t last,
             std::vector<std::size_t>& shown) const;

  boost::intrusive_ptr<const detail::event_spine> spine_;
  // Null if no event has a branch.
  boost::intrusive_ptr<const detail::branch_index> branches_;
  // Null if no event is a rewind.
  boost::intrusive_ptr<const detail::rewind_index> rewinds_;
  // Null if the slice hides no event.
  boost::intrusive_ptr<const detail::event_holes> holes_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// Returns the events in ADK's wire form, oldest first.
json to_json(const event_slice& events);

/// A history, held by its owner.
class event_log {
public:
  /// An empty history. Its first event will be number `before + 1` of the
  /// session.
  explicit event_log(std::uint64_t before = 0) : before_(before) {}

  /// Begins with the events of `past`, which must start with the first event in
  /// the memory of its log. Shares them: O(1), but for 32 events at most.
  explicit event_log(const event_slice& past);
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
  /// events. Not for a log that began with a past.
  std::size_t keep_newest(std::size_t count);

  /// Number of events in memory; dropped events do not count.
  std::size_t size() const noexcept { return all_.last_; }

  /// Number of the session's events before the oldest one in memory.
  std::uint64_t before() const noexcept { return before_; }

  /// Returns the event at `index`; index 0 is the oldest event in memory.
  const event_ptr& operator[](std::size_t index) const { return all_[index]; }

  /// Number of the newest rewind; 0 if there is none.
  std::uint64_t newest_rewind() const noexcept { return all_.newest_rewind(); }

  /// Returns all events so far.
  event_slice slice() const { return all_; }

private:
  void index(const std::string& branch);
  void note_rewind(std::uint64_t count);
  void forget_rewinds();
  void share_rewinds();

  std::uint64_t before_;
  boost::intrusive_ptr<detail::event_spine> spine_;
  boost::intrusive_ptr<detail::branch_index> branches_;
  boost::intrusive_ptr<const detail::rewind_index> rewinds_;
  event_slice all_;
};

} // namespace troupe
