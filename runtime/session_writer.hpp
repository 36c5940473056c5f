// A writer of one session. Its appends stay in order even if one of them fails:
// all later ones are refused.

#pragma once

#include "troupe/runtime/session_service.hpp"

#include <memory>
#include <utility>

namespace troupe {

/// Appends events to one session in the order of the calls, many at a time.
/// Once an append has failed, every later append of this writer is refused with
/// `errc::cancelled` until `resume`; the message names the first failure. So
/// the stored events are always a prefix of the sent ones: to repair a failure,
/// send all of them again with the same ids. Each takes effect once, in the
/// right order.
///
/// Every kind of failure counts: an invalid event, a refused operation, a
/// conflict, `errc::busy`, a failed commit. The outcome of an append that
/// failed with `errc::store_failed` is unknown; no later append is stored.
/// Partial events are returned at once and are not part of the order.
///
/// Copies are the same writer. Thread-safe; appends that several threads start
/// at the same time have no defined order among them. Other writers and
/// `session_service::append_event` are not affected.
class session_writer {
public:
  /// Starts an order of appends; `session_service::writer` calls it. Copies
  /// share the order. Another writer for the same key has an order of its own.
  session_writer(std::shared_ptr<detail::session_backend> backend,
                 session_key key);

  /// The key as it was given, neither trimmed nor checked.
  const session_key& key() const noexcept;

  /// Appends like `session_service::append_event`, in the order of this writer:
  /// an append takes its place when it starts.
  pending<event_ptr> append(event said, append_options options = {});

  /// Appends a shared event, without a copy if no field has to be filled in
  /// or dropped.
  pending<event_ptr> append(event_ptr said, append_options options = {});

  /// Accepts appends again after a failure, which the caller has handled. Waits
  /// until every append under way has been answered; until then later ones are
  /// refused. The answer comes at once if no append has failed. Inside a
  /// completion of this writer, do not block for the answer.
  pending<void> resume();

private:
  struct parts;

  template <class Event>
  pending<event_ptr> append_any(Event said, append_options options);

  std::shared_ptr<const parts> parts_;
};

} // namespace troupe
