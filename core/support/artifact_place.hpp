// Which version of an artifact a session shows after a rewind.
//
// A rewind changes and removes no version. It sets the session's key
// `__artifact/NAME`, which says which version the name stands for and up to
// which number later versions are set aside. So the artifacts of a session go
// back in the event that takes its keys back, and forks, exports and further
// rewinds treat them like every key.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/core/state.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The version that an artifact's name stands for in a session.
struct artifact_place {
  /// The version; unset if the session had no artifact of that name.
  std::optional<std::int64_t> version;
  /// The newest version that is set aside. Newer ones count again.
  std::int64_t set_aside = 0;

  /// Returns the version that the name stands for, if the artifact store's
  /// newest one is `newest`.
  std::optional<std::int64_t>
  current(std::optional<std::int64_t> newest) const noexcept {
    return newest && *newest <= set_aside ? version : newest;
  }

  friend bool operator==(const artifact_place&, const artifact_place&)
    = default;
};

/// Returns the state key of an artifact's place. `name` is the name of an
/// artifact of the session, without prefix.
std::string artifact_place_key(std::string_view name);

/// Returns `{"version": integer or null, "setAside": integer}`.
json to_json(const artifact_place& place);

/// Reads the form that `to_json` makes; nothing if `data` has another one.
std::optional<artifact_place> artifact_place_from(const json& data);

/// Returns the place of the session's artifact `name`; nothing if it stands for
/// its newest version, as it does without rewinds.
std::optional<artifact_place> artifact_place_of(const readonly_state& state,
                                                std::string_view name);

} // namespace troupe
