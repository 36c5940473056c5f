// The followers that clients read, so that the end of the server ends them.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace troupe::serving {

/// Thread-safe.
class following {
public:
  /// Adds a `follower` or a `state_follower`.
  template <class Follower>
  void add(const std::shared_ptr<Follower>& added) {
    add(added.get(), [weak = std::weak_ptr(added)] {
      if (const auto held = weak.lock())
        held->close();
    });
  }

  template <class Follower>
  void remove(const Follower& ended) {
    remove(static_cast<const void*>(&ended));
  }

  /// Number of followers.
  std::size_t count() const;

  /// Closes all followers, also those that are added later.
  void close_all();

private:
  void add(const void* added, std::function<void()> close);
  void remove(const void* ended);

  mutable std::mutex mutex_;
  std::unordered_map<const void*, std::function<void()>> closings_;
  bool is_closed_ = false;
};

} // namespace troupe::serving
