// Exports sessions of a store for other ADK implementations, one line each.

#pragma once

#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <optional>
#include <string>

namespace troupe::cli {

/// Selects one session, all of a user, or all of an app.
struct export_choice {
  std::string app;
  std::optional<std::string> user;
  std::optional<std::string> session;
};

/// Opens the store in `options` and writes each session to `target` as a line
/// of session JSON, consistent in itself.
///
/// Newest update first. Then follow sessions that were updated meanwhile and
/// therefore missed, until a pass over the list misses none. Events are read
/// and written in pieces, so memory does not grow with the session; 16 bytes
/// are kept for each session. A session that is deleted before its line begins
/// is left out.
///
/// Fails with `errc::not_found` if a single chosen session does not exist, or
/// if a session is deleted while its line is written, even if it is created
/// again; the line is then incomplete. Fails with `errc::corrupt` if events are
/// missing.
result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target);

} // namespace troupe::cli
