// Where a key may be sent. Internal; not installed.

#pragma once

#include <string>
#include <string_view>

namespace troupe {

/// Whether the URL is of HTTP without TLS.
bool is_plain_http(std::string_view url);

/// Why a request to that URL must not carry a key, with the way out; empty if
/// it may. Everybody between the two ends reads plain HTTP, so that is allowed
/// to loopback alone: `localhost`, 127.0.0.0/8 and ::1.
std::string key_flaw(std::string_view url);

} // namespace troupe
