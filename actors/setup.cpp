#include "troupe/actors/setup.hpp"

#include "troupe/actors/scheduler.hpp"
#include "troupe/actors/store_queue.hpp"
#include "troupe/core/mechanism.hpp"

namespace troupe::actors {

namespace {

// They wait for a disk, not for each other.
constexpr std::size_t file_threads = 4;

} // namespace

setup::setup(caf::actor_system& on,
             std::shared_ptr<troupe::environment> time_and_ids,
             setup_options chosen)
  : system(on),
    loop(loop_of(on)),
    environment(std::move(time_and_ids)),
    options(chosen),
    appends(chosen.runtime_appends_max, chosen.runtime_bytes_max),
    waits(*environment, chosen.append_wait_max),
    calls(SIZE_MAX, SIZE_MAX),
    actors(SIZE_MAX, SIZE_MAX),
    runs(chosen.runs_max, SIZE_MAX),
    senders(SIZE_MAX, SIZE_MAX),
    tools(chosen.tool_threads, loop),
    files(file_threads, loop) {}

setup::~setup() = default;

bool load_count::enter(std::size_t bytes,
                       std::size_t count_max,
                       std::size_t bytes_max) noexcept {
  const auto before = held_.fetch_add(one + bytes, std::memory_order_acq_rel);
  const auto held = before & bytes_mask;
  return before >> bytes_bits < count_max
         && (held == 0 || held + bytes <= bytes_max
             || is_broken(mechanism::byte_limits));
}

bool load_gate::enter(std::size_t bytes) noexcept {
  const auto count_max
    = is_broken(mechanism::runtime_limits) ? SIZE_MAX : count_max_;
  if (held_.enter(bytes, count_max, bytes_max_))
    return true;
  leave(bytes);
  return false;
}

void load_gate::leave(std::size_t bytes) noexcept {
  if (held_.leave(bytes) && awaited_.load(std::memory_order_seq_cst)) {
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
  empty_.wait(guard, [this] { return held_.empty(); });
}

} // namespace troupe::actors
