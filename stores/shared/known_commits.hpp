// The commits that a process knows to be in a file, identified by their marks.
//
// The last row of each commit carries a random number, its mark. If the newest
// known commit has no mark or another mark in the file, the file has another
// history: it was restored from a copy. See docs/storage.md, "Another history".

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <random>

namespace troupe {

/// Used by one thread, except `newest`.
class known_commits {
public:
  struct commit {
    std::int64_t row = 0; ///< The last row of the commit.
    std::int64_t mark = 0;
  };

  /// Makes a mark for the next commit.
  std::int64_t make() { return static_cast<std::int64_t>(random_()); }

  /// Records a commit of this process.
  void add_own(const commit& written) {
    see(written);
    own_.push_back(written);
    if (own_.size() > own_max)
      own_.pop_front();
  }

  /// Records the newest commit in the file, of any process; unset if its row
  /// has no mark.
  void see(const std::optional<commit>& newest) {
    const std::lock_guard guard(mutex_);
    newest_ = newest;
  }

  /// Forgets the newest commit. Commits of this process are kept.
  void forget_newest() { see(std::nullopt); }

  /// Number of commits of this process that are known to be written.
  std::size_t own_count() const noexcept { return own_.size(); }

  /// Returns the newest known commit. Safe from any thread.
  std::optional<commit> newest() const {
    const std::lock_guard guard(mutex_);
    return newest_;
  }

  /// Forgets this process's commits that `has` does not find, newest first, and
  /// returns their number. Stops at the first that is found: two histories are
  /// equal up to the point where they part.
  template <class Has>
  std::size_t forget_missing(const Has& has) {
    std::size_t missing = 0;
    while (!own_.empty() && !has(own_.back())) {
      own_.pop_back();
      ++missing;
    }
    return missing;
  }

private:
  // One commit takes 16 bytes.
  static constexpr std::size_t own_max = 65'536;

  mutable std::mutex mutex_; // Guards `newest_`.
  std::optional<commit> newest_;
  std::deque<commit> own_;
  std::mt19937_64 random_{std::random_device{}()};
};

} // namespace troupe
