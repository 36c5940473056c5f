#include "troupe/server/adk/following.hpp"

#include <utility>
#include <vector>

namespace troupe::serving {

void following::add(const void* added, std::function<void()> close) {
  {
    const std::lock_guard guard(mutex_);
    if (!is_closed_) {
      closings_.emplace(added, std::move(close));
      return;
    }
  }
  close();
}

void following::remove(const void* ended) {
  const std::lock_guard guard(mutex_);
  closings_.erase(ended);
}

std::size_t following::count() const {
  const std::lock_guard guard(mutex_);
  return closings_.size();
}

void following::close_all() {
  std::vector<std::function<void()>> all;
  {
    const std::lock_guard guard(mutex_);
    is_closed_ = true;
    for (const auto& [key, close] : closings_)
      all.push_back(close);
  }
  // Without the lock: the end of a follower is told inside this call.
  for (const auto& close : all)
    close();
}

} // namespace troupe::serving
