#include "troupe/agents/turns/turnstile.hpp"

#include <utility>

namespace troupe {

void turnstile::enter(std::function<void()> go) {
  {
    const std::lock_guard guard(mutex_);
    if (inside_ == inside_max_) {
      waiting_.push_back(std::move(go));
      return;
    }
    ++inside_;
  }
  go();
}

void turnstile::leave() {
  std::function<void()> next;
  {
    const std::lock_guard guard(mutex_);
    if (waiting_.empty()) {
      --inside_;
      return;
    }
    next = std::move(waiting_.front());
    waiting_.pop_front();
  }
  next();
}

} // namespace troupe
