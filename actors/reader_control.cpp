#include "troupe/actors/reader_control.hpp"

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/setup.hpp"

#include <utility>

namespace troupe::detail {

namespace {

error asked_twice() {
  return {errc::invalid_argument,
          "a follower answers one call of next at a time"};
}

} // namespace

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::start() {
  {
    const std::lock_guard guard(mutex_);
    is_asked_ = true;
  }
  ask();
}

// Sends a letter. `is_asked_` is set already.
template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::ask() {
  {
    const std::lock_guard guard(mutex_);
    if (shared_->store && !outcome_) {
      shared_->store->add_watcher();
      is_watching_ = true;
    }
  }
  send_letter();
}

// Requires `mutex_`.
template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::stop_watching() {
  if (std::exchange(is_watching_, false))
    shared_->store->remove_watcher();
}

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::receive(result<Answer> answer) {
  lock guard(mutex_);
  is_asked_ = false;
  stop_watching();
  if (outcome_)
    return;
  if (answer)
    install(*std::move(answer));
  else
    outcome_ = answer.error();
  changed_.notify_one();
  if (actors::lent_thread::activation_on() == nullptr)
    return serve(std::move(guard));
  guard.unlock();
  serve_later();
}

// The next answer, if there is one: a delivery, or the end. Requires `mutex_`.
template <class Answer, class Delivery>
std::optional<result<Delivery>> reader_control<Answer, Delivery>::take() {
  if (auto fetched = take_fetched())
    return result<Delivery>(*std::move(fetched));
  if (!outcome_)
    return std::nullopt;
  if (*outcome_ || std::exchange(failure_told_, true))
    return result<Delivery>(Delivery());
  return result<Delivery>(outcome_->error());
}

// Calls the completion as long as there is an event for it. A completion that
// asks for the next event gets it after it has returned, so the stack does not
// grow.
template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::serve(lock guard) {
  if (std::exchange(is_serving_, true))
    return;
  const auto self = this->shared_from_this();
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

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::serve_later() {
  // Counted before `ended` is read, as in `run_control`.
  shared_->calls.enter(0);
  if (shared_->ended)
    serve(lock(mutex_));
  else
    actors::call_later(*shared_, [self = this->shared_from_this()] {
      self->serve(lock(self->mutex_));
    });
  shared_->calls.leave(0);
}

template <class Answer, class Delivery>
result<Delivery> reader_control<Answer, Delivery>::next() {
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

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::next(completion<Delivery> done) {
  lock guard(mutex_);
  if (is_busy()) {
    guard.unlock();
    return done(asked_twice());
  }
  next_waiter_ = std::move(done);
  serve(std::move(guard));
}

template <class Answer, class Delivery>
std::optional<result<Delivery>> reader_control<Answer, Delivery>::next_now() {
  const std::lock_guard guard(mutex_);
  return is_busy() ? std::nullopt : take();
}

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::close() {
  end({}, false);
}

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::cancel(error reason) {
  end(std::move(reason), true);
}

template <class Answer, class Delivery>
void reader_control<Answer, Delivery>::end(result<void> outcome,
                                           bool keeps_fetched) {
  bool is_asked = false;
  bool has_waiter = false;
  {
    const std::lock_guard guard(mutex_);
    if (!keeps_fetched) {
      drop_fetched();
      failure_told_ = true;
    }
    if (outcome_)
      return;
    outcome_ = std::move(outcome);
    this->is_over_ = true;
    stop_watching();
    changed_.notify_one();
    is_asked = is_asked_;
    has_waiter = static_cast<bool>(next_waiter_);
  }
  if (is_asked)
    take_letter_back();
  if (has_waiter)
    serve_later();
}

template class reader_control<actors::followed, event_ptr>;
template class reader_control<actors::followed_state,
                              std::optional<state_change>>;

} // namespace troupe::detail
