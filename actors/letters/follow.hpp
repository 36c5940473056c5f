// The letter by which a reader asks a session for the events after its place.
//
// A session that has none keeps the letter until its next event is
// acknowledged. So there is no queue of events for each reader: a reader that
// is slow has no letter at the session.

#pragma once

#include "troupe/actors/letters/call.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace troupe::actors {

/// The place of a reader in the log of a session.
struct follow_place {
  /// Number of the last event before the place.
  std::uint64_t number = 0;
  /// That event, by which a log that lost events is recognised. Null if there
  /// is none, or if the reader has not seen it.
  event_ptr last;
  /// Number of the session among those of the same key; 0 if it is not known.
  std::uint64_t incarnation = 0;
};

/// Events of a session, and the place after them.
struct followed {
  event_slice events;
  follow_place place;
};

/// Receives the answers to the letters of one reader. Thread-safe.
template <class Answer>
class receiver_of {
public:
  virtual ~receiver_of() = default;

  virtual void receive(result<Answer> answer) = 0;

  /// Returns true if the reader does not wait any more.
  bool is_over() const noexcept {
    return is_over_.load(std::memory_order_relaxed);
  }

protected:
  std::atomic<bool> is_over_{false};
};

/// A letter of a reader, which its owner may keep. It is counted as a call only
/// while its answer is on the way.
template <letter_kind Kind, class Answer>
struct follow_call : letter_of<Kind, call> {
  follow_call() {
    this->is_of_blocked_thread = false;
    this->is_news = true;
  }

  ~follow_call() override;

  void complete() override;
  void fail(const error& why) override;

  void refuse(error why) override { outcome = std::move(why); }

  /// Counts the letter as a call, from now until it is complete.
  void count_in(load_gate& calls);

  /// Called by an owner that gets the letter, since an answer that turned out
  /// to be stale comes back.
  void stop_counting();

  /// Null once it has the answer.
  std::shared_ptr<receiver_of<Answer>> receiver;
  result<Answer> outcome = error(errc::internal, "not answered");
};

struct follow : follow_call<letter_kind::follow, followed> {
  /// Limit of the events in one answer.
  static constexpr std::size_t events_max = 256;

  session_key key;
  /// Unset: the end of the log, at the time when the session gets the letter.
  std::optional<follow_place> place;
  /// The caller has named the place, and no session has confirmed it yet.
  bool is_wish = false;

  /// Over a store, without a place: the end of the log when the session got the
  /// letter, and the number of its loads then.
  struct first_end {
    std::uint64_t number = 0;
    std::uint64_t loads = 0;
    /// True once `number` has been corrected by the first load after the
    /// letter.
    bool is_sure = false;
  };

  std::optional<first_end> end;

  // Over a store: events that are not in memory. -----------------------------

  /// Numbers of the first and the last event that a reader thread reads.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  /// The session's `cuts` at that time.
  std::uint64_t cuts = 0;
  std::optional<result<std::vector<event_ptr>>> read;
};

} // namespace troupe::actors
