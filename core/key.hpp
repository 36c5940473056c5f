// The names of things: scopes, state keys with their prefixes, and the key of a
// session.
//
// The rules are checked here and nowhere else; every way in calls these
// functions.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace troupe {

/// Who owns a key. The order is that of the climb: a later owner is wider, but
/// for `temp`, which never leaves its invocation.
enum class scope : std::uint8_t { session, user, app, temp };

inline constexpr std::string_view key_prefix_app = "app:";
inline constexpr std::string_view key_prefix_user = "user:";
inline constexpr std::string_view key_prefix_temp = "temp:";

/// `"app:"`, `"user:"`, `"temp:"` or `""`.
std::string_view prefix_of(scope where) noexcept;

/// A state key taken apart: `app:theme` is `theme` in scope `app`. Views the
/// text it was made from.
struct scoped_key {
  scope where;
  std::string_view name;
};

/// Splits by an exact, case-sensitive starts-with; checks nothing.
scoped_key split_key(std::string_view key) noexcept;

/// Splits and checks: 1 to 256 bytes of UTF-8 after the prefix, no NUL, not
/// starting with `__` (reserved for the runtime). Fails with
/// `errc::invalid_argument`.
result<scoped_key> check_key(std::string_view key);

/// The prefix and the name put together again.
std::string join_key(scope where, std::string_view name);

/// The full key of a session.
struct session_key {
  std::string app;
  std::string user;
  std::string id;

  friend bool operator==(const session_key&, const session_key&) = default;
  friend auto operator<=>(const session_key&, const session_key&) = default;
};

/// `"app/user/id"`, for messages.
std::string to_string(const session_key& key);

/// Trims and checks an id: 1 to 512 bytes of UTF-8 without NUL. `what` names it
/// in the reason: `"app"`. Fails with `errc::invalid_argument`.
result<std::string> check_id(std::string_view id, std::string_view what);

/// Trims and checks all three parts. Fails with `errc::invalid_argument`.
result<session_key> check_key(const session_key& key);

} // namespace troupe

template <>
struct std::hash<troupe::session_key> {
  std::size_t operator()(const troupe::session_key& key) const noexcept;
};
