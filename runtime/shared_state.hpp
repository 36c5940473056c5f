// The state that sessions share, as code without a session reads and writes it:
// that of an app, or that of one user of an app.
//
//   const auto app = runtime.sessions().state_of_app("press");
//   app.set("app:theme", "dark").value();
//   const auto visits = app.add("app:visits", 1).value();
//
// A write is no event of a session. The owner of the state puts writes and the
// events of all sessions into one order, so no concurrent `add` is lost.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/shared_write.hpp"
#include "troupe/core/state.hpp"
#include "troupe/runtime/state_calls.hpp"
#include "troupe/runtime/state_follower.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace troupe {

namespace detail {
class session_backend;
}

/// Id and condition of a write to shared state.
struct shared_write_options {
  shared_write_options() = default;

  /// A write with this id, which takes effect once if it is sent again. With
  /// `expected`, it is refused unless the state has that revision.
  explicit shared_write_options(std::string write_id,
                                std::optional<std::uint64_t> expected = {})
    : id(std::move(write_id)),
      expected_revision(expected) {}

  /// Id for retries after an unknown outcome, by the rules of `check_id`;
  /// empty: the write cannot be recognised. The newest 64 ids of each app and
  /// user are remembered, also by other processes and after a restart.
  std::string id;
  /// Refuses the write with `errc::conflict` unless the state has this
  /// revision. A retry is recognised first.
  std::optional<std::uint64_t> expected_revision;
};

/// The state of an app or a user at one moment.
struct shared_snapshot {
  /// Its keys, with their prefix.
  readonly_state state;
  /// Number of its changes, by events and by writes.
  std::uint64_t revision = 0;
};

/// A handle to the state of one app, or of one user of an app; copies refer to
/// the same state. Thread-safe. No session has to exist.
///
/// Keys have the prefix of the state: `app:theme` of an app, `user:name` of a
/// user. Other keys fail with `errc::invalid_argument`. Reads and writes fail
/// otherwise like calls of the session service.
///
/// A write returns the revision that it made and the new value. Over a durable
/// store the answer comes when the write is durable. A write fails like an
/// event: with `errc::invalid_argument` or `errc::too_large` on a bad key or
/// value, `errc::type_error` if the present value does not fit the operation,
/// `errc::conflict` (a comparison, another revision than expected, or other
/// operations under a known id), and `errc::busy`. Nothing is applied then.
/// After `errc::store_failed` the outcome is unknown: send the write again with
/// the same id. A retry gets the answer of the first attempt.
class shared_state
  : public state_calls<shared_state, shared_write, shared_write_options> {
public:
  /// Type of the answer of `snapshot`.
  using snapshot_type = shared_snapshot;

  /// Makes the handle; without a user, to the state of the app. The names are
  /// checked by each call, not here.
  shared_state(std::shared_ptr<detail::session_backend> backend,
               std::string app,
               std::optional<std::string> user);

  /// The name of the app as it was given, neither trimmed nor checked.
  const std::string& app() const noexcept { return app_; }

  /// The name of the user as it was given; unset for the state of the app.
  const std::optional<std::string>& user() const noexcept { return user_; }

  /// Returns all keys and the revision. Empty, at revision 0, if there was no
  /// change yet.
  pending<shared_snapshot> snapshot() const;

  /// Returns a reader that delivers the newest state after each change. Without
  /// `from` it starts at the state at the time when it reaches its owner:
  /// writes by handles that follow the call in its thread come later. An event
  /// of a session may still be part of the start, so to miss nothing, pass the
  /// revision of a snapshot. Does not block; errors come with the first
  /// delivery.
  state_follower follow(state_follow_options options = {}) const;

private:
  friend state_calls<shared_state, shared_write, shared_write_options>;

  static const readonly_state& state_in(const shared_snapshot& seen) {
    return seen.state;
  }

  scope where() const noexcept { return user_ ? scope::user : scope::app; }

  result<void> check_read(const std::string& key) const;
  result<void> check_scope(const scoped_key& key) const;
  pending<shared_write> write(std::string key,
                              operation_kind kind,
                              json operand,
                              json expected,
                              shared_write_options options) const;

  std::shared_ptr<detail::session_backend> backend_;
  std::string app_;
  std::optional<std::string> user_;
};

} // namespace troupe
