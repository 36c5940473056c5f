// A lock-free queue of letters from many senders to one actor, which also says
// when the actor has to be woken.
//
// The queue is the batch: what arrives while the actor works is what it takes
// next.

#pragma once

#include "troupe/core/error.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace troupe::actors {

enum class letter_kind : std::uint8_t;

/// One message, owned by the queue or the actor that holds it.
struct letter {
  explicit letter(letter_kind which) noexcept : kind(which) {}

  letter(const letter&) = delete;
  letter& operator=(const letter&) = delete;
  virtual ~letter() = default;

  /// Answers that the letter will not be handled. Called at most once, instead
  /// of handling it.
  virtual void fail(const error& why) = 0;

  letter* next = nullptr;
  const letter_kind kind;
};

using letter_ptr = std::unique_ptr<letter>;

/// Letters in order, for the one who holds them. Not thread-safe.
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

  /// Whether `is_it` is true of one of them.
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
    wake,   ///< The actor sleeps: the sender has to schedule it, once.
    closed, ///< The actor is gone; the letter stays with the sender.
  };

  inbox() = default;
  inbox(const inbox&) = delete;
  inbox& operator=(const inbox&) = delete;

  ~inbox() { static_cast<void>(take_all(nullptr)); }

  /// From any thread. Takes the letter unless the inbox is closed.
  pushed push(letter_ptr& sent) noexcept {
    // Acquires: whoever finds it closed may read what its owner left behind.
    auto* head = head_.load(std::memory_order_acquire);
    do {
      if (head == closed_mark())
        return pushed::closed;
      sent->next = head == awake_mark() ? nullptr : head;
      // Also acquires: who wakes the actor hands on what it did before it
      // slept.
    } while (!head_.compare_exchange_weak(
      head, sent.get(), std::memory_order_acq_rel, std::memory_order_acquire));
    static_cast<void>(sent.release());
    return head == nullptr ? pushed::wake : pushed::quiet;
  }

  /// Everything so far, oldest first; the actor counts as awake from here on.
  letter_list take() noexcept { return take_all(awake_mark()); }

  /// Lets the actor sleep, unless something has arrived.
  bool try_sleep() noexcept {
    auto* expected = awake_mark();
    return head_.compare_exchange_strong(
      expected, nullptr, std::memory_order_acq_rel);
  }

  /// Whether nothing has arrived since the actor, which is awake, last took.
  bool empty() const noexcept {
    return head_.load(std::memory_order_acquire) == awake_mark();
  }

  /// Refuses everything from here on, and gives what is left.
  letter_list close() noexcept { return take_all(closed_mark()); }

private:
  letter_list take_all(letter* mark) noexcept;

  // Addresses that no letter has.
  letter* awake_mark() const noexcept {
    return reinterpret_cast<letter*>(const_cast<inbox*>(this));
  }

  letter* closed_mark() const noexcept {
    return reinterpret_cast<letter*>(
      reinterpret_cast<char*>(const_cast<inbox*>(this)) + 1);
  }

  // Null: the actor sleeps. A mark: it is awake or closed and nothing waits.
  // Else the newest letter.
  std::atomic<letter*> head_{nullptr};
};

} // namespace troupe::actors
