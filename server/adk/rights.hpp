// The rules that a caller's role sets to its requests.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/server/http/router.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe::serving {

/// Returns the refusal of a request whose path names another user, and of a
/// write by a reader.
std::optional<response>
check_rights(const request& head, const path_values& path, const caller& who);

/// Returns the refusal of a request about the data of `user`.
std::optional<response> check_user(const caller& who, const std::string& user);

/// Returns the refusal of a delta with `app:` keys, which other users share, by
/// a caller that is not trusted. `operations` is a list of `stateOps`.
std::optional<response> check_keys(const caller& who,
                                   const json& keys,
                                   const json& operations = json::array());

/// Returns the refusal of an event that a caller may not append. Calls and
/// markers of pauses make agents act, so only trusted callers append them.
std::optional<response> check_event_of(const caller& who, const event& said);

/// Returns status 403.
response forbidden(std::string_view why);

} // namespace troupe::serving
