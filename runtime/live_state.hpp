// The state of a session as code outside of agents reads and writes it.
//
//   auto state = runtime.sessions().state(key);
//   state.add("app:visits", 1).value();
//   const auto visits = state.get("app:visits", 0).value();
//
// Each write is one event, so it is ordered, durable and part of the history
// like those of agents. The owner evaluates it, so no concurrent `add` is lost.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"
#include "troupe/runtime/state_calls.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace detail {
class session_backend;
}

/// Id, condition and author of a write to live state.
struct write_options {
  write_options() = default;

  /// A write with this event id, which takes effect once however often it is
  /// sent. With `expected`, it is refused unless the session has that revision.
  explicit write_options(std::string event_id,
                         std::optional<std::uint64_t> expected = {})
    : id(std::move(event_id)),
      expected_revision(expected) {}

  /// Id of the event, for retries after an unknown outcome. Empty: a new one.
  std::string id;
  /// Refuses the write with `errc::conflict` unless the session has this
  /// revision.
  std::optional<std::uint64_t> expected_revision;
  /// Author of the event: `system`, or `user` for a change that the user made.
  std::string author = "system";
};

/// A handle to the state of one session, with the keys of its user and its app;
/// copies refer to the same session. Thread-safe.
///
/// Keys have their prefix: `topic`, `user:name`, `app:theme`. The calls fail
/// like those of the session service. A write returns the stored event, whose
/// delta has the new value. It fails with `errc::invalid_argument` on a `temp:`
/// key, since only runs have these, and like the writers of
/// `troupe::state`; with `errc::type_error` if the present value does not fit
/// the operation.
class live_state : public state_calls<live_state, event_ptr, write_options> {
public:
  /// Type of the answer of `snapshot`.
  using snapshot_type = readonly_state;

  /// Makes the handle. The key is checked by each call, not here.
  live_state(std::shared_ptr<detail::session_backend> backend, session_key key);

  /// The key as it was given, neither trimmed nor checked.
  const session_key& key() const noexcept { return key_; }

  /// Returns the state of all scopes, with each event completely or not at all.
  pending<readonly_state> snapshot() const;

private:
  friend state_calls<live_state, event_ptr, write_options>;

  static const readonly_state& state_in(const readonly_state& seen) {
    return seen;
  }

  static result<void> check_read(const std::string& key) {
    const auto checked = check_key(key);
    return checked ? result<void>() : checked.error();
  }

  pending<event_ptr> write(std::string key,
                           operation_kind kind,
                           json operand,
                           json expected,
                           write_options options) const;

  std::shared_ptr<detail::session_backend> backend_;
  session_key key_;
};

} // namespace troupe
