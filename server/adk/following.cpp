#include "troupe/server/adk/following.hpp"

#include <vector>

namespace troupe::serving {

void following::add(const std::shared_ptr<follower>& added) {
  bool is_late = false;
  {
    const std::lock_guard guard(mutex_);
    followers_.emplace(added.get(), added);
    is_late = is_closed_;
  }
  if (is_late)
    added->close();
}

void following::remove(const follower& ended) {
  const std::lock_guard guard(mutex_);
  followers_.erase(&ended);
}

std::size_t following::count() const {
  const std::lock_guard guard(mutex_);
  return followers_.size();
}

void following::close_all() {
  std::vector<std::shared_ptr<follower>> all;
  {
    const std::lock_guard guard(mutex_);
    is_closed_ = true;
    for (const auto& [key, each] : followers_)
      if (auto held = each.lock())
        all.push_back(std::move(held));
  }
  // Without the lock: the end of a follower is told inside this call.
  for (const auto& each : all)
    each->close();
}

} // namespace troupe::serving
