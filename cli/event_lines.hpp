// Events from stdin, one JSON object per line, on their way into a session.

#pragma once

#include "troupe/cli/output.hpp"
#include "troupe/runtime/session_service.hpp"

#include <stop_token>

namespace troupe::cli {

/// Appends the events on the lines of `source`, many at a time, and writes each
/// stored one to `target` once it is durable, in order, as a line in wire form.
/// Blank lines count but say nothing.
///
/// The first line that is no event, is refused, or is not stored ends it, with
/// `line N` in the reason: earlier lines stay, later ones are not stored. The
/// same lines with the same ids can be sent again in any case. Fails with
/// `errc::not_found` before anything is read, and with `errc::cancelled` when
/// `stop` is requested; what was under way is then still stored and written.
result<void> append_lines(session_service& sessions,
                          const session_key& key,
                          int source,
                          output& target,
                          const std::stop_token& stop);

} // namespace troupe::cli
