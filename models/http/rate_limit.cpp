#include "troupe/models/http/rate_limit.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe {

namespace {

using seconds = std::chrono::duration<double>;

// A little more than needed, so that rounding does not wake a request too
// early.
constexpr std::chrono::milliseconds grain{1};

// Longest timer; the limit is checked again after it. Far below the limit of a
// duration.
constexpr double wait_seconds_max = 3'600;

constexpr double minutes_settled_max = 10;
constexpr std::size_t waiting_max = 100'000;

} // namespace

rate_limit::rate_limit(rate_limit_options limits,
                       std::shared_ptr<troupe::environment> time)
  : limits_(limits),
    time_(std::move(time)),
    requests_{limits.requests_per_minute.value_or(0),
              limits.requests_per_minute.value_or(0)},
    tokens_{limits.tokens_per_minute.value_or(0),
            limits.tokens_per_minute.value_or(0)},
    filled_at_(time_->now()) {}

void rate_limit::refill() {
  const auto now = time_->now();
  const auto passed = std::max(seconds(now - filled_at_), seconds(0)).count();
  filled_at_ = now;
  for (auto* each : {&requests_, &tokens_})
    each->level
      = std::min(each->capacity, each->level + each->capacity * passed / 60);
}

// Returns the time until the limits allow it, or nothing if they allow it now.
std::optional<std::chrono::nanoseconds>
rate_limit::wait_for(double tokens) const {
  double wait = 0;
  const auto need = [&wait](const bucket& from, double amount) {
    const auto lacking = std::min(amount, from.capacity) - from.level;
    if (lacking > 0)
      wait = std::max(wait, lacking / from.capacity * 60);
  };
  if (limits_.requests_per_minute)
    need(requests_, 1);
  if (limits_.tokens_per_minute)
    need(tokens_, tokens);
  if (wait <= 0)
    return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
           seconds(std::min(wait, wait_seconds_max)))
         + grain;
}

void rate_limit::take(double tokens) {
  requests_.level -= 1;
  tokens_.level -= tokens;
}

// Requires `mutex_`. Removes the requests that may pass now, and starts a timer
// for the next one. The callbacks run after the lock is released: `go` may call
// `enter`.
rate_limit::admitted rate_limit::admit() {
  admitted found;
  refill();
  while (!queue_.empty()) {
    if (queue_.front().is_over()) {
      found.given_up.push_back(std::move(queue_.front()));
      queue_.pop_front();
      continue;
    }
    if (const auto wait = wait_for(queue_.front().tokens)) {
      if (!std::exchange(timer_runs_, true))
        time_->call_after(*wait, [weak = weak_from_this()] {
          if (const auto self = weak.lock()) {
            {
              const std::lock_guard guard(self->mutex_);
              self->timer_runs_ = false;
            }
            self->serve();
          }
        });
      break;
    }
    take(queue_.front().tokens);
    found.going.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return found;
}

void rate_limit::serve() {
  admitted found;
  {
    const std::lock_guard guard(mutex_);
    found = admit();
  }
  for (const auto& next : found.going)
    next.go();
}

bool rate_limit::enter(waiter wanted) {
  wanted.tokens = std::max(wanted.tokens, 0.0);
  {
    const std::lock_guard guard(mutex_);
    if (queue_.size() >= waiting_max)
      return false;
    queue_.push_back(std::move(wanted));
  }
  serve();
  return true;
}

void rate_limit::correct(double expected, double used) {
  {
    const std::lock_guard guard(mutex_);
    const auto counted = std::min(used, minutes_settled_max * tokens_.capacity);
    tokens_.level
      = std::min(tokens_.capacity, tokens_.level + expected - counted);
  }
  serve(); // The tokens that came back may be enough for waiting requests.
}

} // namespace troupe
