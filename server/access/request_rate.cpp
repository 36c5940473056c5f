#include "troupe/server/access/request_rate.hpp"

#include <algorithm>

namespace troupe::serving {

double request_rate::room() const noexcept {
  return std::max(per_second_, 1.0);
}

// Drops full buckets, so that the table does not grow with each caller.
void request_rate::forget(clock::time_point now) {
  constexpr std::chrono::seconds period{10};
  if (now - forgot_ < period)
    return;
  forgot_ = now;
  std::erase_if(buckets_, [this, now, period](const auto& each) {
    const std::chrono::duration<double> idle = now - each.second.filled;
    return idle > period
           && each.second.left + idle.count() * per_second_ >= room();
  });
}

bool request_rate::admit(const std::string& who, clock::time_point now) {
  if (per_second_ <= 0)
    return true;
  const std::lock_guard guard(mutex_);
  forget(now);
  const auto [found, is_new] = buckets_.try_emplace(who, bucket{room(), now});
  auto& own = found->second;
  const std::chrono::duration<double> passed = now - own.filled;
  own.left = std::min(room(), own.left + passed.count() * per_second_);
  own.filled = now;
  if (own.left < 1)
    return false;
  own.left -= 1;
  return true;
}

} // namespace troupe::serving
