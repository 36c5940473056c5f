// Counts removals of followed users. A removal by another process counts only
// if this process sees it before the user is created again.
//
// A user that is created again may reach any revision, so a reader that was
// away could not tell it from the former one by the revision alone.

#pragma once

#include "troupe/stores/store.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

namespace troupe::actors {

/// Thread-safe.
class removal_counts {
public:
  /// Counts removals of `user` until `forget`, which belongs to each call.
  void keep(const owner_name& user) {
    const std::lock_guard guard(mutex_);
    ++kept_[user].readers;
    size_ = kept_.size();
  }

  void forget(const owner_name& user) {
    const std::lock_guard guard(mutex_);
    if (const auto found = kept_.find(user); --found->second.readers == 0)
      kept_.erase(found);
    size_ = kept_.size();
  }

  /// Counts a removal, if its owner is kept. Cheap if none is.
  void note(const owner_name& removed) {
    if (size_ == 0)
      return;
    const std::lock_guard guard(mutex_);
    if (const auto found = kept_.find(removed); found != kept_.end())
      ++found->second.removals;
  }

  /// Number of removals since the owner is kept.
  std::uint64_t of(const owner_name& user) const {
    const std::lock_guard guard(mutex_);
    const auto found = kept_.find(user);
    return found == kept_.end() ? 0 : found->second.removals;
  }

private:
  struct count {
    std::size_t readers = 0;
    std::uint64_t removals = 0;
  };

  mutable std::mutex mutex_;
  std::unordered_map<owner_name, count> kept_;
  std::atomic<std::size_t> size_{0};
};

} // namespace troupe::actors
