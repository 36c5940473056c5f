// A lock-free queue of letters from many threads to one actor. A letter is a
// message object that one holder owns at a time.
//
// The queue also tells a sender when the actor sleeps and has to be scheduled.
// The actor takes all queued letters at once and handles them as one batch.

#pragma once

#include "troupe/contexts/recycled.hpp"
#include "troupe/core/error.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace troupe::actors {

/// The kind of a letter. Its senders define the values but 0, which belongs to
/// the engine.
enum class letter_kind : std::uint8_t;

constexpr letter_kind wrapped_letter{0};

/// One message, owned by the queue or actor that holds it.
struct letter : recycled {
  explicit letter(letter_kind which) noexcept : kind(which) {}

  letter(const letter&) = delete;
  letter& operator=(const letter&) = delete;
  virtual ~letter() = default;

  /// Answers that the letter is not handled. Called at most once, and only for
  /// letters that are not handled.
  virtual void fail(const error& why) = 0;

  letter* next = nullptr;
  const letter_kind kind;
};

using letter_ptr = std::unique_ptr<letter>;

/// Letters in order. Not thread-safe: only their holder uses them.
class letter_list {
public:
  letter_list() = default;

  letter_list(letter_list&& other) noexcept
    : first_(std::exchange(other.first_, nullptr)),
      last_(std::exchange(other.last_, nullptr)) {}

  letter_list& operator=(letter_list&& other) noexcept {
    std::swap(first_, other.first_);
    std::swap(last_, other.last_);
    return *this;
  }

  ~letter_list() {
    while (!empty())
      pop_front();
  }

  bool empty() const noexcept { return first_ == nullptr; }

  letter& front() const noexcept { return *first_; }

  /// Returns true if `is_it` is true for at least one letter.
  template <class Predicate>
  bool any_of(const Predicate& is_it) const {
    for (const auto* each = first_; each != nullptr; each = each->next)
      if (is_it(*each))
        return true;
    return false;
  }

  void push_back(letter_ptr added) noexcept {
    auto* raw = added.release();
    raw->next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = raw;
    last_ = raw;
  }

  void push_front(letter_ptr added) noexcept {
    auto* raw = added.release();
    raw->next = std::exchange(first_, raw);
    if (last_ == nullptr)
      last_ = raw;
  }

  letter_ptr pop_front() noexcept {
    auto* raw = std::exchange(first_, first_->next);
    if (first_ == nullptr)
      last_ = nullptr;
    raw->next = nullptr;
    return letter_ptr(raw);
  }

private:
  letter* first_ = nullptr;
  letter* last_ = nullptr;
};

class inbox {
public:
  enum class pushed : std::uint8_t {
    quiet,  ///< The actor is awake and will find the letter.
    wake,   ///< The actor sleeps: the sender schedules it.
    closed, ///< The actor has ended; the sender keeps the letter.
  };

  inbox() = default;
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  ~inbox() { static_cast<void>(take_all(nullptr)); }

  /// Takes the letter unless the inbox is closed. Thread-safe.
  pushed push(letter_ptr& sent) noexcept {
    // Acquire: a sender that sees `closed` may read the data that the actor
    // wrote before it closed.
    auto* head = head_.load(std::memory_order_acquire);
    do {
      if (head == closed_mark())
        return pushed::closed;
      sent->next = head == awake_mark() ? nullptr : head;
      // Release publishes the letter. Acquire: a sender that wakes the actor
      // sees the writes that the actor made before it slept, and passes them on
      // to the thread that runs it next.
    } while (!head_.compare_exchange_weak(
      head, sent.get(), std::memory_order_acq_rel, std::memory_order_acquire));
    static_cast<void>(sent.release());
    return head == nullptr ? pushed::wake : pushed::quiet;
  }

  /// Takes all letters, oldest first. The actor counts as awake afterwards.
  letter_list take() noexcept { return take_all(awake_mark()); }

  /// Marks a sleeping actor as awake, without a letter. Returns false if it
  /// does not sleep. Thread-safe.
  bool try_wake() noexcept {
    // Acquire: the caller reads what the actor wrote before it slept.
    letter* expected = nullptr;
    return head_.compare_exchange_strong(expected,
                                         awake_mark(),
                                         std::memory_order_acquire,
                                         std::memory_order_relaxed);
  }

  /// Marks the actor as asleep. Returns false if a letter has arrived.
  bool try_sleep() noexcept {
    auto* expected = awake_mark();
    return head_.compare_exchange_strong(
      expected, nullptr, std::memory_order_acq_rel);
  }

  /// Returns true if no letter has arrived since the actor's last `take`. Call
  /// only while the actor is awake.
  bool empty() const noexcept {
    return head_.load(std::memory_order_acquire) == awake_mark();
  }

  /// Closes the inbox and returns the remaining letters.
  letter_list close() noexcept { return take_all(closed_mark()); }

private:
  letter_list take_all(letter* mark) noexcept;

  // Marks: addresses inside this object, so no letter has them.
  letter* awake_mark() const noexcept {
    return reinterpret_cast<letter*>(const_cast<inbox*>(this));
  }

  letter* closed_mark() const noexcept {
    return reinterpret_cast<letter*>(
      reinterpret_cast<char*>(const_cast<inbox*>(this)) + 1);
  }

  // Null: the actor sleeps. A mark: the actor is awake or the inbox is closed,
  // and no letter waits. Else: the newest letter, linked to the older ones.
  std::atomic<letter*> head_{nullptr};
};

} // namespace troupe::actors
