// Letters of readers that an owner keeps until there is something new.

#pragma once

#include "troupe/actors/letters/dispatch.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace troupe::actors {

/// `Letter` is a `follow_call`. Not thread-safe: for one owner.
template <class Letter>
class waiting_readers {
public:
  void keep(std::unique_ptr<Letter> waiting) {
    waiting_.push_back(std::move(waiting));
    if (++count_ >= dropped_at_)
      drop_ended();
  }

  bool empty() const noexcept { return waiting_.empty(); }

  /// Counts an ended reader. Drops the letters of ended readers once they may
  /// be half of all. Costs O(1) on average.
  void note_end() {
    if (++ended_ * 2 >= count_)
      drop_ended();
  }

  /// Drops the letters of readers that do not wait any more.
  void drop_ended() {
    count_ = 0;
    ended_ = 0;
    for (auto all = std::exchange(waiting_, letter_list()); !all.empty();) {
      auto next = take_as<Letter>(all.pop_front());
      if (next->receiver->is_over())
        continue;
      waiting_.push_back(std::move(next));
      ++count_;
    }
    dropped_at_ = std::max<std::size_t>(16, count_ * 2);
  }

  /// Returns all letters, in the order in which they came.
  letter_list take() {
    count_ = 0;
    return std::exchange(waiting_, letter_list());
  }

private:
  letter_list waiting_;
  std::size_t count_ = 0;
  std::size_t ended_ = 0; // Since `drop_ended`.
  // Ended letters are dropped when the list has doubled, so that a letter costs
  // O(1).
  std::size_t dropped_at_ = 16;
};

} // namespace troupe::actors
