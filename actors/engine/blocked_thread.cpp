#include "troupe/actors/engine/blocked_thread.hpp"

#include "troupe/actors/engine/spin.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace troupe::actors {

namespace {

// Number of times that a thread looks for its answer before it parks. Together
// these looks take a few microseconds, less than parking and waking. An owner
// that runs on another core often answers within this time.
constexpr int looks_before_park = 100;

thread_local wake_batch* collecting = nullptr;

// Number of threads that look at this moment. At most half as many as cores may
// look, so that owners find a free core.
std::atomic<int> looking{0};

int looking_max() noexcept {
  static const int half
    = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
  return half;
}

} // namespace

// The part of a thread that sleeps. The thread uses it again for each wait,
// because a waking thread may still hold it after the wait.
class blocked_thread::sleeper {
public:
  void sleep() {
    std::unique_lock guard(mutex_);
    woken_.wait(guard, [this] { return std::exchange(is_woken_, false); });
  }

  void wake() noexcept {
    {
      const std::lock_guard guard(mutex_);
      is_woken_ = true;
    }
    woken_.notify_one();
  }

  // The thread that this one wakes as soon as it is awake.
  std::shared_ptr<sleeper> next;

private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_woken_ = false;
};

void blocked_thread::wait() {
  if (looking.fetch_add(1, std::memory_order_relaxed) < looking_max())
    for (int look = 0; look < looks_before_park && !is_woken(); ++look)
      spin_pause();
  looking.fetch_sub(1, std::memory_order_relaxed);
  if (is_woken())
    return;
  static thread_local const auto mine = std::make_shared<sleeper>();
  sleeper_ = mine;
  int expected = waiting;
  // Release publishes `sleeper_`. On failure, acquire makes the answer visible.
  if (!state_.compare_exchange_strong(
        expected, parked, std::memory_order_acq_rel, std::memory_order_acquire))
    return;
  mine->sleep();
  if (const auto next = std::exchange(mine->next, nullptr))
    next->wake();
}

void blocked_thread::wake() noexcept {
  int expected = waiting;
  if (state_.compare_exchange_strong(
        expected, woken, std::memory_order_acq_rel, std::memory_order_acquire))
    return;
  // The thread has parked, and does not continue until its sleeper is woken.
  auto asleep = std::move(sleeper_);
  state_.store(woken, std::memory_order_release);
  if (collecting != nullptr)
    collecting->add(std::move(asleep));
  else
    asleep->wake();
}

wake_batch::wake_batch() noexcept {
  if (collecting == nullptr)
    collecting = this;
}

wake_batch::~wake_batch() {
  if (collecting != this)
    return;
  collecting = nullptr;
  if (first_)
    first_->wake();
}

void wake_batch::add(std::shared_ptr<blocked_thread::sleeper> woken) noexcept {
  auto* const added = woken.get();
  (last_ == nullptr ? first_ : last_->next) = std::move(woken);
  last_ = added;
}

} // namespace troupe::actors
