// The part that all readers share: one call of `next` waits at a time, in any
// form, and the reader ends once.
//
// Invariant: at most one letter is under way. It is sent when the reader asks
// and nothing fetched is left, so a reader that is slow fetches nothing.

#pragma once

#include "troupe/actors/letters/follow.hpp"
#include "troupe/actors/letters/follow_state.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/state_change.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

namespace troupe::actors {
struct setup;
} // namespace troupe::actors

namespace troupe::detail {

/// A reader that the end of the runtime ends.
class ending_reader {
public:
  virtual ~ending_reader() = default;

  /// Ends the reader with an error, after the deliveries that it has fetched.
  virtual void cancel(error reason) = 0;
};

/// `Answer` comes from an owner. A default `Delivery` tells the end.
///
/// Thread-safe. Completions are called on a thread of the runtime, or on the
/// thread that asks if the delivery is there. Once the runtime has ended, they
/// are called on the thread that ends the reader.
template <class Answer, class Delivery>
class reader_control
  : public actors::receiver_of<Answer>,
    public ending_reader,
    public std::enable_shared_from_this<reader_control<Answer, Delivery>> {
public:
  /// Takes the place of the reader. Called once, before `next`.
  void start();

  result<Delivery> next();
  void next(completion<Delivery> done);
  std::optional<result<Delivery>> next_now();

  /// Ends the reader, and drops the deliveries that it has fetched.
  void close();

  void cancel(error reason) final;

  void receive(result<Answer> answer) final;

protected:
  using lock = std::unique_lock<std::mutex>;

  explicit reader_control(std::shared_ptr<actors::setup> shared)
    : shared_(std::move(shared)) {}

  // The first three require `mutex_`.

  /// Installs an answer of the owner.
  virtual void install(Answer answer) = 0;

  /// Takes the next fetched delivery, if there is one.
  virtual std::optional<Delivery> take_fetched() = 0;

  virtual void drop_fetched() = 0;

  /// Asks the owner for the next events, or the next state. Takes `mutex_`.
  virtual void send_letter() = 0;

  /// Called once, without `mutex_`, if the reader ends while its letter is
  /// under way.
  virtual void take_letter_back() {}

  const std::shared_ptr<actors::setup> shared_;
  mutable std::mutex mutex_;

private:
  std::optional<result<Delivery>> take();

  bool is_busy() const noexcept { return is_blocked_ || next_waiter_; }

  void serve(lock guard);
  void serve_later();
  void ask();
  void end(result<void> outcome, bool keeps_fetched);
  void stop_watching();

  std::condition_variable changed_;
  bool is_asked_ = false;    // A letter is under way.
  bool is_watching_ = false; // It is counted as a watcher of the store.
  bool is_blocked_ = false;  // A thread waits in `next`.
  bool is_serving_ = false;  // A thread calls completions.
  completion<Delivery> next_waiter_;
  std::optional<result<void>> outcome_;
  bool failure_told_ = false;
};

extern template class reader_control<actors::followed, event_ptr>;
extern template class reader_control<actors::followed_state,
                                     std::optional<state_change>>;

} // namespace troupe::detail
