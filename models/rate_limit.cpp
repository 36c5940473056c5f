#include "troupe/models/rate_limit.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace troupe {

namespace {

using seconds = std::chrono::duration<double>;

// A little beyond, so that rounding does not wake anybody too early.
constexpr std::chrono::milliseconds grain{1};

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

// How long until there is enough, or nothing if there is.
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
  return std::chrono::duration_cast<std::chrono::nanoseconds>(seconds(wait))
         + grain;
}

void rate_limit::take(double tokens) {
  requests_.level -= 1;
  tokens_.level -= tokens;
}

// Under the lock: who may go now; a timer for the next one.
std::deque<std::function<void()>> rate_limit::admit() {
  std::deque<std::function<void()>> going;
  refill();
  while (!queue_.empty()) {
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
    going.push_back(std::move(queue_.front().go));
    queue_.pop_front();
  }
  return going;
}

void rate_limit::serve() {
  std::deque<std::function<void()>> going;
  {
    const std::lock_guard guard(mutex_);
    going = admit();
  }
  for (const auto& go : going)
    go();
}

void rate_limit::enter(double tokens, std::function<void()> go) {
  {
    const std::lock_guard guard(mutex_);
    queue_.push_back({std::max(tokens, 0.0), std::move(go)});
  }
  serve();
}

void rate_limit::settle(double expected, double used) {
  const std::lock_guard guard(mutex_);
  tokens_.level = std::min(tokens_.capacity, tokens_.level + expected - used);
}

} // namespace troupe
