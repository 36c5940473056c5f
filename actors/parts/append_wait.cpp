#include "troupe/actors/parts/append_wait.hpp"

#include <algorithm>

namespace troupe::actors {

namespace {

// Cost of an append in addition to the bytes of its event, in bytes.
constexpr std::uint64_t append_bytes = 4'096;

// Smaller groups show the fixed time of a commit, and not the rate of the
// store.
constexpr double telling_work = 64.0 * append_bytes;

// Groups that take at least this part of `wait_max` show a rate, however small
// they are. The rate is forgotten after a pause of the same length.
constexpr double telling_part = 0.1;

// Upper bound for the fixed time of a commit, as a part of `wait_max`.
constexpr double fixed_part = 0.02;

// One nanosecond: keeps the sum of the times above zero.
constexpr double time_min = 1;

std::uint64_t work_of(append_load load) noexcept {
  return load.count * append_bytes + load.bytes;
}

} // namespace

append_wait::append_wait(environment& time, std::chrono::nanoseconds wait_max)
  : time_(time),
    wait_max_(wait_max.count()) {
  forget();
}

std::int64_t append_wait::now() const {
  return time_.elapsed().count();
}

bool append_wait::is_stale(std::int64_t idle_time) const noexcept {
  return static_cast<double>(idle_time)
         > static_cast<double>(wait_max_) * telling_part;
}

bool append_wait::admits(append_load under_way) const {
  if (wait_max_ <= 0)
    return true;
  const bool is_idle = is_idle_.load(std::memory_order_acquire);
  const auto waited = now() - since_.load(std::memory_order_relaxed);
  // The store is idle: appends under way wait for something else, such as a
  // load.
  if (is_idle && is_stale(waited))
    return true;
  // The store has completed nothing for `wait_max`: a new append would wait at
  // least as long.
  if (!is_idle && waited > wait_max_)
    return false;
  // A single append is always accepted.
  return under_way.count == 0
         || work_of(under_way) < work_max_.load(std::memory_order_relaxed);
}

void append_wait::start() {
  if (wait_max_ <= 0 || !is_idle_.load(std::memory_order_relaxed))
    return;
  const auto started = now();
  if (is_stale(started - since_.load(std::memory_order_relaxed)))
    forget();
  // Idle time counts as work time only while appends queue up on their way to
  // the store.
  if (!is_queueing_)
    from_ = started;
  since_.store(started, std::memory_order_relaxed);
  is_idle_.store(false, std::memory_order_release);
}

void append_wait::update(const group& next) {
  if (is_idle_.load(std::memory_order_relaxed))
    return; // `wait_max` is zero.
  const auto settled = now();
  work_ += static_cast<double>(work_of(next.done));
  was_decided_again_ = was_decided_again_ || next.is_decided_again;
  is_queueing_ = work_ > 0
                 && static_cast<double>(work_of(next.under_way))
                      >= work_ + static_cast<double>(work_of(next.done));
  if (is_queueing_ || is_full(next.under_way))
    loaded_at_ = settled;
  // The rate is forgotten after a time without backlog: by the next one the
  // store may be faster or slower.
  if (settled - loaded_at_ > wait_max_) {
    forget();
    from_ = settled;
  }
  // The time of groups without appends counts for the next group with some.
  if (work_ > 0)
    measure(settled);
  since_.store(settled, std::memory_order_relaxed);
  is_idle_.store(!next.has_more, std::memory_order_release);
}

// So much work is under way that appends are refused, or soon will be.
bool append_wait::is_full(append_load under_way) const noexcept {
  const auto work_max = work_max_.load(std::memory_order_relaxed);
  return work_max != unlimited && work_of(under_way) >= work_max / 2;
}

void append_wait::measure(std::int64_t settled) {
  const auto time
    = static_cast<double>(std::max<std::int64_t>(settled - from_, 0));
  fixed_time_ = std::min(fixed_time_, time);
  if (is_queueing_ || is_known()) {
    if (tells(work_, time))
      learn(work_, std::max(time - fixed_time_, time_min));
    // A small group in a short time shows that the rate is at least this high.
    else if (is_known() && work_ * rate_time_ > rate_work_ * time)
      learn(work_, std::max(time, time_min));
    else if (is_queueing_)
      return; // Later groups are added to this one.
  }
  work_ = 0;
  was_decided_again_ = false;
  from_ = settled;
}

bool append_wait::tells(double work, double time) const noexcept {
  return work >= telling_work
         || (!was_decided_again_
             && time >= static_cast<double>(wait_max_) * telling_part);
}

void append_wait::learn(double work, double time) noexcept {
  rate_work_ = rate_work_ / 2 + work;
  rate_time_ = rate_time_ / 2 + time;
  const auto bound = rate_work_ / rate_time_ * static_cast<double>(wait_max_);
  constexpr auto far = unlimited / 2;
  const bool is_far = bound >= static_cast<double>(far);
  work_max_.store(is_far ? unlimited : static_cast<std::uint64_t>(bound),
                  std::memory_order_relaxed);
}

void append_wait::forget() noexcept {
  work_max_.store(unlimited, std::memory_order_relaxed);
  is_queueing_ = false;
  work_ = 0;
  was_decided_again_ = false;
  rate_work_ = 0;
  rate_time_ = 0;
  fixed_time_ = static_cast<double>(wait_max_) * fixed_part;
}

} // namespace troupe::actors
