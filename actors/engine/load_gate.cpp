#include "troupe/actors/engine/load_gate.hpp"

namespace troupe::actors {

bool load_count::enter(std::size_t bytes,
                       std::size_t count_max,
                       std::size_t bytes_max) noexcept {
  const auto before = held_.fetch_add(one + bytes, std::memory_order_acq_rel);
  const auto held = before & bytes_mask;
  return before >> bytes_bits < count_max
         && (held == 0 || held + bytes <= bytes_max);
}

bool load_gate::enter(std::size_t bytes) noexcept {
  if (held_.enter(bytes, count_max_, bytes_max_))
    return true;
  leave(bytes);
  return false;
}

void load_gate::leave(std::size_t bytes) noexcept {
  if (held_.leave(bytes) && awaited_.load(std::memory_order_seq_cst)) {
    // Under the lock, so that the notification cannot fall between the waiter's
    // check and its sleep.
    const std::lock_guard guard(mutex_);
    empty_.notify_all();
  }
}

void load_gate::wait_until_empty() {
  std::unique_lock guard(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  empty_.wait(guard, [this] { return held_.empty(); });
}

} // namespace troupe::actors
