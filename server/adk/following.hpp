// The followers that clients read, so that the end of the server ends them.

#pragma once

#include "troupe/runtime/follower.hpp"

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace troupe::serving {

/// Thread-safe.
class following {
public:
  void add(const std::shared_ptr<follower>& added);
  void remove(const follower& ended);

  /// Number of followers.
  std::size_t count() const;

  /// Closes all followers, also those that are added later.
  void close_all();

private:
  mutable std::mutex mutex_;
  std::unordered_map<const follower*, std::weak_ptr<follower>> followers_;
  bool is_closed_ = false;
};

} // namespace troupe::serving
