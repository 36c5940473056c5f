#include "troupe/actors/follow_control.hpp"

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/setup.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe::detail {

namespace {

error asked_twice() {
  return {errc::invalid_argument,
          "a follower answers one call of next at a time"};
}

} // namespace

follow_control::follow_control(std::shared_ptr<actors::setup> shared,
                               session_key key,
                               std::optional<std::uint64_t> from)
  : shared_(std::move(shared)),
    key_(std::move(key)) {
  if (!from)
    return;
  place_.emplace().number = *from;
  is_wish_ = true;
}

void follow_control::start() {
  {
    const std::lock_guard guard(mutex_);
    is_asked_ = true;
  }
  ask();
}

// Sends a letter. `is_asked_` is set already.
void follow_control::ask() {
  auto wanted = std::make_unique<actors::follow>();
  wanted->key = key_;
  wanted->receiver = shared_from_this();
  {
    const std::lock_guard guard(mutex_);
    wanted->place = place_;
    wanted->is_wish = is_wish_;
    if (shared_->store && !outcome_) {
      shared_->store->add_watcher();
      is_watching_ = true;
    }
  }
  actors::follow_session(*shared_, std::move(wanted));
}

// Requires `mutex_`.
void follow_control::stop_watching() {
  if (std::exchange(is_watching_, false))
    shared_->store->remove_watcher();
}

void follow_control::receive(result<actors::followed> answer) {
  lock guard(mutex_);
  is_asked_ = false;
  stop_watching();
  if (outcome_)
    return;
  if (answer) {
    place_ = answer->place;
    is_wish_ = false;
    fetched_ = std::move(*answer);
    taken_ = 0;
  } else {
    outcome_ = answer.error();
  }
  changed_.notify_one();
  if (actors::lent_thread::activation_on() == nullptr)
    return serve(std::move(guard));
  guard.unlock();
  serve_later();
}

std::optional<result<event_ptr>> follow_control::take() {
  if (taken_ < fetched_.events.size()) {
    auto said = fetched_.events[taken_];
    if (++taken_ == fetched_.events.size()) {
      fetched_ = {};
      taken_ = 0;
    }
    return result<event_ptr>(std::move(said));
  }
  if (!outcome_)
    return std::nullopt;
  if (*outcome_ || std::exchange(failure_told_, true))
    return result<event_ptr>(event_ptr());
  return result<event_ptr>(outcome_->error());
}

// Calls the completion as long as there is an event for it. A completion that
// asks for the next event gets it after it has returned, so the stack does not
// grow.
void follow_control::serve(lock guard) {
  if (std::exchange(is_serving_, true))
    return;
  const auto self = shared_from_this();
  while (next_waiter_) {
    auto ready = take();
    if (!ready)
      break;
    auto done = std::exchange(next_waiter_, nullptr);
    guard.unlock();
    // Destroyed here: it may hold the last reference to the reader, whose end
    // takes the lock.
    std::exchange(done, nullptr)(std::move(*ready));
    guard.lock();
  }
  is_serving_ = false;
  const bool asks = next_waiter_ && !std::exchange(is_asked_, true);
  guard.unlock();
  if (asks)
    ask();
}

void follow_control::serve_later() {
  // Counted before `ended` is read, as in `run_control`.
  shared_->calls.enter(0);
  if (shared_->ended)
    serve(lock(mutex_));
  else
    actors::call_later(*shared_, [self = shared_from_this()] {
      self->serve(lock(self->mutex_));
    });
  shared_->calls.leave(0);
}

result<event_ptr> follow_control::next() {
  lock guard(mutex_);
  if (is_busy())
    return asked_twice();
  is_blocked_ = true;
  auto ready = take();
  while (!ready) {
    if (std::exchange(is_asked_, true)) {
      changed_.wait(guard);
    } else {
      guard.unlock();
      ask();
      guard.lock();
    }
    ready = take();
  }
  is_blocked_ = false;
  return *std::move(ready);
}

void follow_control::next(completion<event_ptr> done) {
  lock guard(mutex_);
  if (is_busy()) {
    guard.unlock();
    return done(asked_twice());
  }
  next_waiter_ = std::move(done);
  serve(std::move(guard));
}

std::optional<result<event_ptr>> follow_control::next_now() {
  const std::lock_guard guard(mutex_);
  return is_busy() ? std::nullopt : take();
}

void follow_control::close() {
  end({}, false);
}

void follow_control::cancel(error reason) {
  end(std::move(reason), true);
}

void follow_control::end(result<void> outcome, bool keeps_events) {
  {
    const std::lock_guard guard(mutex_);
    if (!keeps_events) {
      fetched_ = {};
      taken_ = 0;
      failure_told_ = true;
    }
    if (outcome_)
      return;
    outcome_ = std::move(outcome);
    is_over_ = true;
    stop_watching();
    changed_.notify_one();
    if (!next_waiter_)
      return;
  }
  serve_later();
}

std::optional<std::uint64_t> follow_control::revision() const {
  const std::lock_guard guard(mutex_);
  if (!place_)
    return std::nullopt;
  return place_->number - (fetched_.events.size() - taken_);
}

} // namespace troupe::detail
