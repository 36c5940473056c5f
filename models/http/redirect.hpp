// The target of a redirect. Requests do not follow one: they would send their
// key and their body to a server that the user has not chosen. Internal.

#pragma once

#include <string>

namespace troupe {

/// Returns the URL of a `Location` header, which may be relative to the URL of
/// the request, without user, password, query and fragment: they may hold keys.
/// Empty if it is no URL of http or https.
std::string redirect_target(const std::string& requested,
                            const std::string& location);

} // namespace troupe
