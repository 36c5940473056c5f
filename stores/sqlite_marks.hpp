// The commits that a process knows to be in a file, by their marks.
//
// The last row of each commit carries a random number, its mark. A file in
// which the newest known commit has no mark, or another one, has another
// history: it was restored from a copy. See docs/storage.md, "Another history".

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>

namespace troupe {

/// Not thread-safe.
class sqlite_marks {
public:
  struct commit {
    std::int64_t row = 0; ///< The last of the commit.
    std::int64_t mark = 0;
  };

  /// A mark for the next commit.
  std::int64_t make() { return static_cast<std::int64_t>(random_()); }

  /// This process has committed.
  void add_own(const commit& written) {
    newest_ = written;
    own_.push_back(written);
    if (own_.size() > own_max)
      own_.pop_front();
  }

  /// The newest commit in the file is this one, of any process; unset if no row
  /// has a mark.
  void see(const std::optional<commit>& newest) { newest_ = newest; }

  /// Starts anew: nothing is known of the file. The own commits are kept.
  void forget_newest() { newest_.reset(); }

  /// Commits of this process that are known to have been written.
  std::size_t own_count() const noexcept { return own_.size(); }

  /// The newest that is known, if any.
  const std::optional<commit>& newest() const noexcept { return newest_; }

  /// Forgets the own commits that `has` does not find, and returns how many
  /// these are. Histories part once: what is behind a missing one is missing.
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
  // 16 bytes each.
  static constexpr std::size_t own_max = 65'536;

  std::optional<commit> newest_;
  std::deque<commit> own_;
  std::mt19937_64 random_{std::random_device{}()};
};

} // namespace troupe
