// The rule for URLs that may receive a key. Internal.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Returns true if the URL is HTTP without TLS.
bool is_plain_http(std::string_view url);

/// Returns the reason why a request to that URL must not carry a key, with a
/// remedy; empty if it may. Other machines on the route can read plain HTTP, so
/// plain HTTP is allowed only to loopback: `localhost`, 127.0.0.0/8 and ::1.
std::string key_flaw(std::string_view url);

} // namespace troupe
