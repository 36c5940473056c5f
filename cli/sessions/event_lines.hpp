// Appends events from stdin, one JSON object on each line, to a session.

#pragma once

#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/session_service.hpp"

#include <stop_token>

namespace troupe::cli {

/// Appends the events on the lines of `source`, many at a time. Writes each
/// stored event to `target`, in order, as a line in wire form, once it is
/// durable. Blank lines are skipped, but count.
///
/// Stops at the first line that is not an event, is refused, or is not stored;
/// the error names `line N`. Earlier lines stay, later ones are not stored. The
/// same lines with the same ids can be sent again in any case. Fails with
/// `errc::not_found` before it reads, and with `errc::cancelled` when `stop` is
/// requested; appends under way are then still stored and written.
result<void> append_lines(session_service& sessions,
                          const session_key& key,
                          int source,
                          output& target,
                          const std::stop_token& stop);

} // namespace troupe::cli
