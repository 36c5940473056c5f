#include "troupe/actors/setup.hpp"

#include "troupe/actors/scheduler.hpp"

namespace troupe::actors {

void load_gate::leave(std::size_t bytes) noexcept {
  const auto before = held_.fetch_sub(one + bytes, std::memory_order_seq_cst);
  if (before >> bytes_bits == 1 && awaited_.load(std::memory_order_seq_cst)) {
    // Under the lock, so that the waiter cannot miss it between its look and
    // its sleep.
    const std::lock_guard guard(mutex_);
    empty_.notify_all();
  }
}

void schedule(setup& shared, caf::resumable* job) {
  if (is_worker_of(shared.system))
    return schedule(shared.system, job);
  // The job may end the last actor that keeps the setup.
  const auto kept = shared.shared_from_this();
  kept->senders.enter(0);
  schedule(kept->system, job);
  kept->senders.leave(0);
}

void load_gate::wait_until_empty() {
  std::unique_lock guard(mutex_);
  awaited_.store(true, std::memory_order_seq_cst);
  empty_.wait(guard,
              [this] { return held_.load(std::memory_order_seq_cst) == 0; });
}

} // namespace troupe::actors
