// Fields of a query and conditions of a request, read with a check.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/server/http/request.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe::serving {

/// Returns a number of the query, from 0; nothing if it is absent. Fails with
/// `errc::invalid_argument` on other text.
result<std::optional<std::uint64_t>> number_in(const request& asked,
                                               std::string_view name);

/// Returns a Boolean of the query, in a spelling that FastAPI takes: `true`,
/// `1`, `on`, `yes` and so on; false if it is absent. Fails with
/// `errc::invalid_argument` on other text.
result<bool> flag_in(const request& asked, std::string_view name);

/// Returns the revision of `If-Match: "7"`, which a write expects; nothing
/// without the header, and for `*`. Fails with `errc::invalid_argument`.
result<std::optional<std::uint64_t>> expected_revision(const request& asked);

/// Returns true if the client asks for a stream of server-sent events.
bool wants_stream(const request& asked);

/// Returns the number behind which a stream begins: that of `Last-Event-ID`, or
/// of `after` in the query. Nothing without both. Fails with
/// `errc::invalid_argument`.
result<std::optional<std::uint64_t>> stream_place(const request& asked);

} // namespace troupe::serving
