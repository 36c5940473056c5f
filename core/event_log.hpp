// A session's history: appended by one owner, read by anyone in O(1) per
// snapshot.
//
// Events lie in chunks that never move; a reader keeps the chunks it can reach
// and a range, and never sees what comes later. A history with branches also
// knows which events lie on each, so that a lane finds its own among many.

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

// The chunks in order. Slots behind the newest event are written once by the
// owner; readers stay below their length.
struct event_spine : ref_counted<event_spine> {
  explicit event_spine(std::size_t capacity) : chunks(capacity) {}

  std::vector<boost::intrusive_ptr<event_chunk>> chunks;
};

// Where the events of each branch lie, in order. The owner adds places that
// readers of older slices pass over.
struct branch_index : ref_counted<branch_index> {
  using places = std::vector<std::size_t>;

  mutable std::mutex mutex;
  std::map<std::string, places, std::less<>> by_branch;
};

} // namespace detail

/// A range of a session's events; immutable, cheap to copy, safe to share.
class event_slice {
public:
  class iterator {
  public:
    using value_type = event;
    using difference_type = std::ptrdiff_t;
    using reference = const event&;
    using pointer = const event*;
    using iterator_category = std::forward_iterator_tag;

    iterator() = default;

    iterator(const event_slice* slice, std::size_t index)
      : slice_(slice),
        index_(index) {}

    reference operator*() const { return *(*slice_)[index_]; }

    pointer operator->() const { return (*slice_)[index_].get(); }

    iterator& operator++() {
      ++index_;
      return *this;
    }

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

  std::size_t size() const noexcept { return last_ - first_; }

  bool empty() const noexcept { return first_ == last_; }

  /// The event at `index` of the slice, oldest first.
  const event_ptr& operator[](std::size_t index) const noexcept {
    const auto at = first_ + index;
    return spine_->chunks[at / detail::event_chunk::capacity]
      ->events[at % detail::event_chunk::capacity];
  }

  const event& front() const { return *(*this)[0]; }

  const event& back() const { return *(*this)[size() - 1]; }

  iterator begin() const { return {this, 0}; }

  iterator end() const { return {this, size()}; }

  /// The newest `count` events of the slice.
  event_slice recent(std::size_t count) const {
    auto tail = *this;
    if (count < size())
      tail.first_ = last_ - count;
    return tail;
  }

  /// The events at `first` up to, but not with, `last` of the slice; both are
  /// at most `size()`, and `first` is not above `last`.
  event_slice part(std::size_t first, std::size_t last) const {
    auto cut = *this;
    cut.first_ = first_ + first;
    cut.last_ = first_ + last;
    return cut;
  }

  /// The places in the slice, in order, of the events that show to somebody on
  /// `branch`: those on the branch itself and on its ancestors by dot-separated
  /// segments, the empty one included. Nothing if all events do, as they do to
  /// somebody on no branch. O(what it gives).
  std::optional<std::vector<std::size_t>>
  shown_on(std::string_view branch) const;

  /// The events at or after `time`: each is compared, since timestamps are data
  /// and need not be in order.
  event_slice after(timestamp time) const;

private:
  friend class event_log;

  void merge(const std::vector<std::size_t>& places,
             std::vector<std::size_t>& shown) const;

  boost::intrusive_ptr<const detail::event_spine> spine_;
  // Null: no event has a branch.
  boost::intrusive_ptr<const detail::branch_index> branches_;
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

/// The owner's end of a history.
class event_log {
public:
  event_log() = default;
  event_log(event_log&&) = default;
  event_log& operator=(event_log&&) = default;

  /// O(1), amortised over the growth of the spine.
  void push_back(event_ptr said);

  /// Lets go of events before the newest `count`, in whole chunks, and returns
  /// how many. O(count / 32); readers keep what they have.
  std::size_t keep_newest(std::size_t count);

  std::size_t size() const noexcept { return all_.last_; }

  const event_ptr& operator[](std::size_t index) const { return all_[index]; }

  /// Everything so far.
  event_slice slice() const { return all_; }

private:
  void index(const std::string& branch);

  boost::intrusive_ptr<detail::event_spine> spine_;
  boost::intrusive_ptr<detail::branch_index> branches_;
  event_slice all_;
};

} // namespace troupe
