// Appends to one session whose order survives failures: the first failure cuts
// the stream.

#pragma once

#include "troupe/runtime/session_service.hpp"

#include <functional>
#include <memory>
#include <utility>

namespace troupe {

namespace actors {
class write_order;
}

/// Appends events to one session in the order of the calls, many at a time.
/// Once an append has failed, every later append of the same writer is refused
/// with `errc::cancelled`, and its message names the failure, until `resume`.
/// So the stored events are always a beginning of what was sent: to send all of
/// it again with the same ids gives the right order, and each takes effect
/// once.
///
/// Failures of every kind cut the stream: a broken rule, a refused operation, a
/// conflict, `errc::busy`, a failed commit. The outcome of an append that
/// failed with `errc::store_failed` is unknown; nothing behind it is stored.
/// Partial events are given back at once and are no part of the order.
///
/// Copies are the same writer. Thread-safe; appends that different threads
/// start at the same time take either order. Other writers and
/// `session_service::append_event` are not affected.
class session_writer {
public:
  session_writer(std::shared_ptr<detail::session_backend> backend,
                 session_key key);

  const session_key& key() const noexcept { return key_; }

  /// Like `session_service::append_event`, in the order of this writer.
  result<event_ptr> append(event said, append_options options = {});
  void append(event said, append_options options, completion<event_ptr> done);

  auto append_async(event said, append_options options = {}) {
    auto start = [self = *this, said = std::move(said), options](
                   completion<event_ptr> done) mutable {
      self.append(std::move(said), options, std::move(done));
    };
    return pending<event_ptr, decltype(start)>(std::move(start));
  }

  result<event_ptr> append(event_ptr said, append_options options = {});
  void
  append(event_ptr said, append_options options, completion<event_ptr> done);

  auto append_async(event_ptr said, append_options options = {}) {
    auto start = [self = *this, said = std::move(said), options](
                   completion<event_ptr> done) mutable {
      self.append(std::move(said), options, std::move(done));
    };
    return pending<event_ptr, decltype(start)>(std::move(start));
  }

  /// Accepts appends again after a failure: the caller says that it has seen
  /// it. Answers once every append under way has been answered, and until then
  /// later ones are refused. Answers at once if no append has failed. The
  /// blocking form must not be called inside a completion of this writer.
  /// Fails with `errc::would_deadlock` on a thread of the runtime.
  result<void> resume();
  void resume(completion<void> done);

  auto resume_async() {
    auto start = [self = *this](completion<void> done) mutable {
      self.resume(std::move(done));
    };
    return pending<void, decltype(start)>(std::move(start));
  }

private:
  template <class Event>
  void start(Event said, append_options options, completion<event_ptr> done);

  std::shared_ptr<detail::session_backend> backend_;
  session_key key_;
  std::shared_ptr<actors::write_order> order_;
};

} // namespace troupe
