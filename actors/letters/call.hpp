// Letters whose answer a caller outside of the actors waits for.

#pragma once

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/letters/kind.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/core/error.hpp"

#include <functional>
#include <utility>

namespace troupe::actors {

class load_gate;
struct execution;
struct setup;

/// A letter that a caller outside of the actors waits for.
struct call : letter {
  explicit call(letter_kind which) noexcept
    : letter(which),
      is_of_blocked_thread(lent_thread::is_starting()) {}

  /// Gives the answer to the caller. Called once. It may call users' code, so
  /// owners leave it to another thread, unless `is_of_blocked_thread` is true.
  virtual void complete() = 0;

  /// Makes an error the answer.
  virtual void refuse(error why) = 0;

  /// The gate that counts the call until it is complete; null if no gate counts
  /// it.
  load_gate* gate = nullptr;

  /// True if the answer only wakes the blocked thread that made the call. No
  /// code of users is called then, so any thread may complete the call at once.
  bool is_of_blocked_thread;

  /// True if the answer is news for a reader, who can wait until all others
  /// have their answers.
  bool is_news = false;
};

template <class T>
struct call_for : call {
  using call::call;

  /// Answers `errc::internal` if the letter was not answered.
  ~call_for() override;

  void complete() override;
  void fail(const error& why) override;

  void refuse(error why) override { outcome = std::move(why); }

  // The message fits into the string's own buffer: most letters never show it.
  result<T> outcome = error(errc::internal, "not answered");
  completion<T> done;
};

/// Completes calls in order: those of blocked threads now, and the others on a
/// thread of the actor system. News comes last, behind the other jobs of the
/// system, and in any order: a reader waits for one answer at a time.
void complete_later(execution& on, letter_list answered);

/// Calls `work` on a thread of the actor system. Shutting down waits for it, as
/// for a call.
void call_later(setup& shared, std::function<void()> work);

} // namespace troupe::actors
