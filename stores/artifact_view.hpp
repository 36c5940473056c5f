// The artifacts of a session as the session shows them: after a rewind an older
// version, or none, may count as the newest.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/state.hpp"
#include "troupe/stores/artifact_store.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// Reads artifacts as of one state of a session. All calls may block, and fail
/// as those of `artifact_store` do. As thread-safe as the store.
class artifact_view {
public:
  /// `kept` must outlive the view. `state` is the state of the session `key`.
  artifact_view(artifact_store& kept, session_key key, readonly_state state)
    : kept_(&kept),
      key_(std::move(key)),
      state_(std::move(state)) {}

  /// A view as of a fetched session, also of an earlier revision: its names
  /// stand for the versions of the newest rewind up to there.
  artifact_view(artifact_store& kept, const session& fetched)
    : artifact_view(kept, fetched.key(), fetched.state()) {}

  /// Loads a version; if `version` is unset, the one that the name stands for.
  /// Returns nothing if there is none. A version that a rewind has set aside
  /// can still be loaded by its number.
  result<std::optional<part>>
  load(std::string_view name, std::optional<std::int64_t> version = {}) const;

  /// Returns the version that the name stands for; nothing if there is none.
  result<std::optional<std::int64_t>> current(std::string_view name) const;

  /// Lists the names that stand for a version, those of the user with the
  /// prefix `user:`, in byte order.
  result<std::vector<std::string>> list() const;

private:
  artifact_store* kept_;
  session_key key_;
  readonly_state state_;
};

} // namespace troupe
