#include "troupe/stores/postgres/pool.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

// A load needs a connection only while it runs. More would only wait for the
// server's disks.
constexpr std::size_t connections_max = 12;

constexpr auto pause_min = 50ms;
constexpr auto pause_max = 2000ms;

} // namespace

postgres_pool::lease::~lease() {
  if (!lent_)
    return;
  if (!lent_->is_usable() || std::uncaught_exceptions() > exceptions_)
    lent_.reset();
  const std::lock_guard guard(pool_->mutex_);
  --pool_->lent_;
  if (lent_ && generation_ == pool_->generation_)
    pool_->free_.push_back(std::move(lent_));
  pool_->changed_.notify_all();
}

result<postgres_pool::lease> postgres_pool::take(bool fresh) {
  std::unique_lock guard(mutex_);
  if (fresh)
    free_.clear();
  changed_.wait(guard, [this] { return lent_ < connections_max; });
  ++lent_;
  if (!free_.empty()) {
    auto found = std::move(free_.back());
    free_.pop_back();
    return lease(*this, std::move(found), generation_);
  }
  const auto failed_before = attempts_failed_;
  while (clock::now() < due_ && attempts_failed_ == failed_before)
    changed_.wait_until(guard, due_);
  if (attempts_failed_ != failed_before) {
    // Another caller's attempt failed while this one waited; its failure is
    // used.
    --lent_;
    changed_.notify_all();
    return *last_failure_;
  }
  const auto generation = generation_;
  guard.unlock();
  auto opened = connect();
  guard.lock();
  if (opened) {
    pause_ = 0ms;
    due_ = {};
    return lease(*this, *std::move(opened), generation);
  }
  --lent_;
  ++attempts_failed_;
  last_failure_ = opened.error();
  pause_
    = std::clamp<std::chrono::milliseconds>(pause_ * 2, pause_min, pause_max);
  // Half of the pause is random, so that processes do not retry at the same
  // time.
  due_ = clock::now() + pause_ / 2
         + pause_ / 2 * static_cast<int>(random_() % 256) / 255;
  changed_.notify_all();
  return opened.error();
}

void postgres_pool::renew() {
  const std::lock_guard guard(mutex_);
  free_.clear();
  ++generation_;
}

result<std::unique_ptr<postgres_connection>> postgres_pool::connect() {
  auto opened = postgres_connection::open(
    url_,
    setup_.read_only ? postgres_connection::server::any
                     : postgres_connection::server::primary);
  if (!opened)
    return opened;
  if (auto prepared = prepare_session(**opened, setup_); !prepared)
    return prepared.error();
  return opened;
}

} // namespace troupe
