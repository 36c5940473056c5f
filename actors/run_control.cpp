#include "troupe/actors/run_control.hpp"

#include "troupe/actors/owner_actor.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

// A completion to be called where callers' code runs.
template <class T>
struct finished : actors::call {
  finished(completion<T> to_call, result<T> with)
    : call(actors::letter_kind::finished),
      done(std::move(to_call)),
      outcome(std::move(with)) {}

  void complete() override { done(std::move(outcome)); }

  void fail(const error&) override {} // Jobs are not refused.

  completion<T> done;
  result<T> outcome;
};

template <class T>
void call_later(actors::setup& shared, completion<T> done, result<T> outcome) {
  if (shared.ended)
    return done(std::move(outcome)); // There is nowhere else to call it.
  actors::letter_list one;
  one.push_back(
    std::make_unique<finished<T>>(std::move(done), std::move(outcome)));
  actors::complete_later(shared.system, std::move(one));
}

} // namespace

void run_control::attach(caf::strong_actor_ptr invocation) {
  const std::lock_guard guard(mutex_);
  if (outcome_)
    return; // It has ended already, and must not be held.
  invocation_ = std::move(invocation);
  if (wished_end_)
    actors::as_inbox(invocation_)
      .tell(std::make_unique<actors::cancel>(*wished_end_));
}

std::optional<result<event_ptr>> run_control::take() {
  if (has_events()) {
    auto said = std::move(events_[first_]);
    if (++first_ == events_.size()) {
      events_.clear();
      first_ = 0;
    } else if (first_ * 2 > events_.size() + 64) {
      // Keeps what is taken from piling up under a slow consumer.
      events_.erase(events_.begin(),
                    events_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    if (said->partial)
      --partial_count_;
    return result<event_ptr>(std::move(said));
  }
  if (!outcome_)
    return std::nullopt;
  if (*outcome_ || std::exchange(failure_told_, true))
    return result<event_ptr>(event_ptr());
  return result<event_ptr>(outcome_->error());
}

void run_control::deliver(event_ptr said) {
  const std::lock_guard guard(mutex_);
  if (outcome_)
    return;
  if (said->partial && ++partial_count_ > partial_max) {
    const auto oldest
      = std::find_if(events_.begin() + static_cast<std::ptrdiff_t>(first_),
                     events_.end(),
                     [](const event_ptr& waiting) { return waiting->partial; });
    events_.erase(oldest);
    --partial_count_;
  }
  events_.push_back(std::move(said));
  if (next_waiter_)
    call_later(*shared_, std::exchange(next_waiter_, nullptr), *take());
  else
    changed_.notify_all();
}

void run_control::end(result<void> outcome) {
  const std::lock_guard guard(mutex_);
  outcome_ = std::move(outcome);
  invocation_.reset();
  if (next_waiter_)
    call_later(*shared_, std::exchange(next_waiter_, nullptr), *take());
  for (auto& done : std::exchange(end_waiters_, {}))
    call_later(*shared_, std::move(done), *outcome_);
  changed_.notify_all();
}

result<event_ptr> run_control::next() {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [this] { return has_events() || outcome_; });
  return *take();
}

void run_control::next(completion<event_ptr> done) {
  const std::lock_guard guard(mutex_);
  if (auto ready = take())
    call_later(*shared_, std::move(done), std::move(*ready));
  else
    next_waiter_ = std::move(done);
}

result<void> run_control::wait() {
  std::unique_lock guard(mutex_);
  changed_.wait(guard, [this] { return outcome_.has_value(); });
  return *outcome_;
}

void run_control::wait(completion<void> done) {
  const std::lock_guard guard(mutex_);
  if (outcome_)
    call_later(*shared_, std::move(done), *outcome_);
  else
    end_waiters_.push_back(std::move(done));
}

void run_control::cancel(error reason) {
  const std::lock_guard guard(mutex_);
  if (outcome_ || wished_end_)
    return;
  wished_end_ = std::move(reason);
  stop.request_stop();
  if (invocation_)
    actors::as_inbox(invocation_)
      .tell(std::make_unique<actors::cancel>(*wished_end_));
}

bool run_control::has_ended() const {
  const std::lock_guard guard(mutex_);
  return outcome_.has_value();
}

} // namespace troupe::detail
