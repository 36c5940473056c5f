// One run of an agent: the message that starts it, and the caller's handle, a
// cursor on the events that the run commits.

#pragma once

#include "troupe/contexts/lost_update.hpp"
#include "troupe/contexts/pending.hpp"
#include "troupe/contexts/run_options.hpp"
#include "troupe/core/content.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/models/trace_context.hpp"

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {
class run_control;
}

/// A content by role `user`, the changes of state that come with it, and the
/// span that has caused it. Content and changes are appended as one event
/// before the first agent runs.
struct user_message {
  user_message(std::nullptr_t, json = {}) = delete;

  /// A message with one text part. The pointer must not be null.
  user_message(const char* text, json delta = empty_object())
    : user_message(std::string(text), std::move(delta)) {}

  /// A message with one text part.
  user_message(std::string text, json delta = empty_object())
    : user_message(user_text(std::move(text)), std::move(delta)) {}

  /// A message of any parts but function calls. An empty role means `user`.
  user_message(troupe::content said, json delta = empty_object())
    : content(std::move(said)),
      state_delta(std::move(delta)) {}

  /// Parts of the message.
  troupe::content content;
  /// Delta in any scope: `{"user:name": "Ann", "temp:text": …}`.
  json state_delta;
  /// The span that has caused the run, as a request to this program has named
  /// it in its headers. Spans of the run belong to its trace, and requests of
  /// the run to models and MCP servers name it or a span below it
  /// (docs/telemetry.md). A run with an invalid one fails with
  /// `errc::invalid_argument`. The event in a store keeps it for a recovery.
  /// Empty: the run has a trace of its own.
  trace_context trace = {};
};

/// One run of an agent on a session.
///
/// Events are delivered after they are committed, in the order of the session's
/// log. Partial events (streaming) may be lost: if they are not taken, only the
/// newest are kept. All members are thread-safe, but only one consumer may take
/// events. The destructor cancels the run and does not wait for it, so keep the
/// handle until the answer; after `detach` the run continues without it.
class run {
public:
  /// Wraps a run that `runtime::run` has made.
  explicit run(std::shared_ptr<detail::run_control> control);
  /// Takes the run over. The moved-from handle can only be assigned to
  /// or destroyed.
  run(run&&) noexcept;
  /// Exchanges the runs of both handles. The former run is cancelled when the
  /// other handle is destroyed.
  run& operator=(run&&) noexcept;
  ~run();

  /// Id of this run. All of its events have it.
  const std::string& invocation_id() const noexcept;

  /// Returns the next event, or null at the end. Fails with the run's error,
  /// once, after the last event; further calls return null.
  pending<event_ptr> next();

  /// Waits until the run has ended. Fails with the run's error. Events that
  /// were not taken can still be taken afterwards.
  pending<void> wait();

  /// Ids of the calls that a paused run waits for: calls of long-running tools,
  /// and questions to the user. A later run on the session continues from the
  /// pause if its message holds a `function_response` for each of them. Empty
  /// before the end, and if the run did not pause.
  std::vector<std::string> waits_for() const;

  /// The first lost update of each key, in the order in which they were
  /// noticed; none of a run with `lost_updates::refuse` or `ignore`. Complete
  /// once the run has ended.
  std::vector<lost_update> lost_updates() const;

  /// Number of all lost updates.
  std::size_t lost_updates_count() const;

  /// Cancels the run: it ends with `errc::cancelled`. Returns at once.
  /// Committed events stay. Not safe inside a signal handler; call it from a
  /// thread that waits for signals.
  void cancel();

  /// Ends the run in this process, with `errc::cancelled`, and leaves it open
  /// in the store: any process can recover it (`runtime::recover`) from its
  /// last committed step. Like `cancel` if the store keeps no open runs, or if
  /// the run has not begun. No effect after `cancel`.
  void leave();

  /// Releases the handle; the run continues.
  void detach();

  /// Iterator for range-for. Blocks for each event, and throws the run's
  /// `troupe::error` at the end if it has failed. Its elements are those of
  /// `next`.
  class iterator {
  public:
    /// Type of the elements, which are never null.
    using value_type = event_ptr;
    /// Type that the iterator concepts require. No distance is ever computed.
    using difference_type = std::ptrdiff_t;

    iterator() = default;

    /// Takes the first event from `source`, and blocks for it.
    explicit iterator(run* source);

    /// The current event. A copy of it stays valid.
    const event_ptr& operator*() const { return current_; }

    /// Gives access to the pointer to the current event.
    const event_ptr* operator->() const { return &current_; }

    /// Blocks for the next event. Throws the error of `next()`.
    iterator& operator++();

    /// Blocks for the next event and returns nothing, as the iterator has a
    /// single pass.
    void operator++(int) { ++*this; }

    friend bool operator==(const iterator& left, std::default_sentinel_t) {
      return left.current_ == nullptr;
    }

  private:
    run* source_ = nullptr;
    event_ptr current_;
  };

  /// Takes the next event, and blocks for it. Events that were taken before are
  /// not repeated.
  iterator begin() { return iterator(this); }

  /// Equals an iterator after the last event.
  std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::shared_ptr<detail::run_control> control_;
};

} // namespace troupe
