// Names: scopes, state keys with their prefixes, and the key of a session.
//
// The rules for names are checked only here; every entry point calls these
// functions.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// The owner of a key. From `session` to `app`, each owner is wider than the
/// one before. `temp` belongs to one invocation and never leaves it.
enum class scope : std::uint8_t { session, user, app, temp };

/// Prefix of keys that all users of an app share.
inline constexpr std::string_view key_prefix_app = "app:";
/// Prefix of keys that all sessions of a user in an app share.
inline constexpr std::string_view key_prefix_user = "user:";
/// Prefix of keys that live only during an invocation and are never stored.
inline constexpr std::string_view key_prefix_temp = "temp:";

/// Prefix of the session's keys that say which version of an artifact its name
/// stands for (core/support/artifact_place.hpp). The runtime writes them.
inline constexpr std::string_view key_prefix_artifact = "__artifact/";

/// Returns `"app:"`, `"user:"`, `"temp:"` or `""`.
std::string_view prefix_of(scope where) noexcept;

/// A state key split into scope and name: `app:theme` is `theme` in scope
/// `app`. A view of the text that it was made from.
struct scoped_key {
  /// Scope that the prefix names; `session` without a prefix.
  scope where;
  /// Key without prefix. The text that was split must outlive it.
  std::string_view name;
};

/// Splits a key by its exact, case-sensitive prefix. Checks nothing.
scoped_key split_key(std::string_view key) noexcept;

/// Splits and checks a key: 1 to 256 bytes of UTF-8 after the prefix, no NUL,
/// not starting with `__`, which is reserved. A recorded change may also have a
/// session's key with `key_prefix_artifact`, of 256 bytes after that. Fails
/// with `errc::invalid_argument`.
result<scoped_key> check_key(std::string_view key);

/// Checks a key for a new value. Besides the rules of `check_key`, the name
/// must not begin with a prefix itself, as in `app:user:x`: such a key is a
/// mistake. Old data may have such keys; they can still be read and erased. A
/// key with `key_prefix_artifact` is refused. Fails with
/// `errc::invalid_argument`.
result<scoped_key> check_new_key(std::string_view key);

/// Returns true for the name of a session's key that begins with
/// `key_prefix_artifact`.
bool is_artifact_key(const scoped_key& key) noexcept;

/// Joins prefix and name.
std::string join_key(scope where, std::string_view name);

/// The full key of a session.
struct session_key {
  session_key() = default;

  /// The parts are not checked here, but by each call that takes the key.
  session_key(std::string app_id, std::string user_id, std::string session_id)
    : app(std::move(app_id)),
      user(std::move(user_id)),
      id(std::move(session_id)) {}

  /// Name of the app.
  std::string app;
  /// Name of the user; the same name in another app is another user.
  std::string user;
  /// Id of the session, unique for its user and app.
  std::string id;

  friend bool operator==(const session_key&, const session_key&) = default;
  friend auto operator<=>(const session_key&, const session_key&) = default;
};

/// Returns `"app/user/id"`, for error messages.
std::string to_string(const session_key& key);

/// Trims and checks an id: 1 to 512 bytes of UTF-8 without NUL. `what` names it
/// in the error, for example `"app"`. Fails with `errc::invalid_argument`.
result<std::string> check_id(std::string_view id, std::string_view what);

/// As `check_id`, but copies nothing: the trimmed id is a view of `id`.
result<std::string_view> trim_id(std::string_view id, std::string_view what);

/// Trims and checks all three parts. Fails with `errc::invalid_argument`.
result<session_key> check_key(const session_key& key);

} // namespace troupe

/// Hash of a session key, for unordered containers.
template <>
struct std::hash<troupe::session_key> {
  /// Mixes the hashes of all three parts. The result is not fit for storage.
  std::size_t operator()(const troupe::session_key& key) const noexcept;
};
