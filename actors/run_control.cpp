#include "troupe/actors/run_control.hpp"

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

// A job that calls one completion on a thread of the runtime.
template <class T>
struct finished : actors::call {
  finished(actors::setup& counted_in, completion<T> to_call, result<T> with)
    : call(actors::letter_kind::finished),
      done(std::move(to_call)),
      outcome(std::move(with)),
      shared(counted_in.share()) {
    shared->calls.enter(0);
  }

  void refuse(error) override {} // Never called.

  void complete() override {
    // The caller's code may release everything that this job does not hold.
    std::exchange(done, nullptr)(std::move(outcome));
    shared->calls.leave(0);
  }

  void fail(const error&) override {} // Never called.

  completion<T> done;
  result<T> outcome;
  const std::shared_ptr<actors::setup> shared;
};

template <class T>
void add(actors::letter_list& calls,
         actors::setup& shared,
         completion<T> done,
         result<T> outcome) {
  calls.push_back(
    std::make_unique<finished<T>>(shared, std::move(done), std::move(outcome)));
}

// Calls the completions on this thread, one after another. A completion that
// asks for the next answer gets it after it has returned, so the stack does not
// grow.
void call_here(actors::letter_list calls) {
  static thread_local actors::letter_list* under_way = nullptr;
  if (under_way != nullptr) {
    while (!calls.empty())
      under_way->push_back(calls.pop_front());
    return;
  }
  under_way = &calls;
  while (!calls.empty()) {
    const auto next = calls.pop_front();
    static_cast<actors::call&>(*next).complete();
  }
  under_way = nullptr;
}

// Must not be called with a lock held: it may run callers' code.
void call_later(actors::setup& shared, actors::letter_list calls) {
  if (calls.empty())
    return;
  // The calls were counted before `ended` is read. Shutting down sets `ended`
  // first and then waits for all that is counted, so the actor system outlives
  // this use.
  if (shared.ended)
    call_here(std::move(calls));
  else
    actors::complete_later(shared, std::move(calls));
}

} // namespace

void run_control::attach(actors::ref<actors::inbox_actor> invocation) {
  std::optional<error> wished;
  {
    const std::lock_guard guard(mutex_);
    if (outcome_)
      return; // A run that has ended does not keep its actor.
    invocation_ = invocation;
    wished = wished_end_;
  }
  if (wished)
    invocation->tell(std::make_unique<actors::cancel>(*wished));
}

std::optional<result<event_ptr>> run_control::take() {
  if (has_events()) {
    auto said = std::move(events_[first_]);
    if (++first_ == events_.size()) {
      events_.clear();
      first_ = 0;
    } else if (first_ * 2 > events_.size() + 64) {
      // Frees taken events even if the consumer is slow for a long time.
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
  actors::letter_list calls;
  {
    const std::lock_guard guard(mutex_);
    if (outcome_)
      return;
    keep(std::move(said));
    if (next_waiter_)
      add(calls, *shared_, std::exchange(next_waiter_, nullptr), *take());
    else
      has_answer_.notify_all();
  }
  call_later(*shared_, std::move(calls));
}

void run_control::keep(event_ptr said) {
  if (said->partial && ++partial_count_ > partial_max) {
    const auto oldest
      = std::find_if(events_.begin() + static_cast<std::ptrdiff_t>(first_),
                     events_.end(),
                     [](const event_ptr& waiting) { return waiting->partial; });
    events_.erase(oldest);
    --partial_count_;
  }
  if (events_.empty())
    events_.reserve(8); // Most runs have no more.
  events_.push_back(std::move(said));
}

void run_control::wait_for(std::vector<std::string> ids) {
  const std::lock_guard guard(mutex_);
  waits_for_ = std::move(ids);
}

std::vector<std::string> run_control::waits_for() const {
  const std::lock_guard guard(mutex_);
  return waits_for_;
}

bool run_control::add_loss(lost_update lost) {
  const std::lock_guard guard(mutex_);
  ++losses_count_;
  if (std::ranges::find(losses_, lost.key, &lost_update::key) != losses_.end())
    return false;
  losses_.push_back(std::move(lost));
  return true;
}

std::vector<lost_update> run_control::losses() const {
  const std::lock_guard guard(mutex_);
  return losses_;
}

std::size_t run_control::losses_count() const {
  const std::lock_guard guard(mutex_);
  return losses_count_;
}

void run_control::end(result<void> outcome) {
  actors::letter_list calls;
  {
    const std::lock_guard guard(mutex_);
    outcome_ = std::move(outcome);
    invocation_.reset();
    if (next_waiter_)
      add(calls, *shared_, std::exchange(next_waiter_, nullptr), *take());
    for (auto& done : std::exchange(end_waiters_, {}))
      add(calls, *shared_, std::move(done), *outcome_);
    has_answer_.notify_all();
    has_ended_.notify_all();
  }
  call_later(*shared_, std::move(calls));
}

result<event_ptr> run_control::next() {
  std::unique_lock guard(mutex_);
  has_answer_.wait(guard, [this] { return has_events() || outcome_; });
  return *take();
}

void run_control::next(completion<event_ptr> done) {
  actors::letter_list calls;
  {
    const std::lock_guard guard(mutex_);
    if (auto ready = take())
      add(calls, *shared_, std::move(done), std::move(*ready));
    else
      next_waiter_ = std::move(done);
  }
  call_later(*shared_, std::move(calls));
}

result<void> run_control::wait() {
  std::unique_lock guard(mutex_);
  has_ended_.wait(guard, [this] { return outcome_.has_value(); });
  return *outcome_;
}

void run_control::wait(completion<void> done) {
  actors::letter_list calls;
  {
    const std::lock_guard guard(mutex_);
    if (outcome_)
      add(calls, *shared_, std::move(done), *outcome_);
    else
      end_waiters_.push_back(std::move(done));
  }
  call_later(*shared_, std::move(calls));
}

void run_control::cancel(error reason) {
  stop_for(std::move(reason), stopping::cancel);
}

void run_control::leave(error reason) {
  stop_for(std::move(reason), stopping::leave);
}

bool run_control::is_left() const {
  const std::lock_guard guard(mutex_);
  return stopped_ == stopping::leave;
}

void run_control::stop_for(error reason, stopping how) {
  actors::ref<actors::inbox_actor> told;
  {
    const std::lock_guard guard(mutex_);
    if (outcome_ || wished_end_)
      return;
    wished_end_ = reason;
    stopped_ = how;
    told = invocation_;
  }
  // This runs the stop callbacks of models and tools, which may answer right
  // here.
  stop.request_stop();
  if (told)
    told->tell(std::make_unique<actors::cancel>(std::move(reason)));
}

bool run_control::has_ended() const {
  const std::lock_guard guard(mutex_);
  return outcome_.has_value();
}

} // namespace troupe::detail
