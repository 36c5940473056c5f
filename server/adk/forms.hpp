// Sessions and events as ADK's clients expect them.
//
// The page of ADK keeps the name of a session under a key that ADK reserves and
// troupe refuses. The server stores it under another name, and nothing but this
// file knows both.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/session.hpp"
#include "troupe/server/http/response.hpp"

#include <string_view>

namespace troupe::serving {

/// Key of ADK's page for the name of a session.
inline constexpr std::string_view metadata_key_adk = "__session_metadata__";
/// Key under which the server stores it.
inline constexpr std::string_view metadata_key = "adk:session_metadata";

/// Renames the reserved key in a state or a delta that a client has sent.
json keys_from_adk(json keys);

/// The same for a state or a delta that is sent to a client.
json keys_to_adk(json keys);

/// Returns `{"id", "appName", "userId", "state", "events", "lastUpdateTime"}`:
/// no other keys, since clients refuse them.
json session_form(const session& fetched);

/// Returns an event with the fields that ADK always writes. Bytes are in the
/// URL-safe alphabet of base64.
json event_form(const event& said);

/// Returns the header `etag` with the revision.
std::string etag_of(std::uint64_t revision);

} // namespace troupe::serving
