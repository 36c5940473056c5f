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
/// The lines are ordered by user, then by session id, both compared as bytes. A
/// session that exists all the time is written once, as of the moment when its
/// page of the list was read. A session that is created meanwhile is written if
/// its place in the order is not passed yet. A session that is deleted before
/// its line begins is left out. The memory that is needed does not depend on
/// the number of sessions or events.
///
/// Fails with `errc::not_found` if a single chosen session does not exist, or
/// if a session is deleted while its line is written, even if it is created
/// again; the line is then incomplete. Fails with `errc::corrupt` if events are
/// missing.
result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target);

} // namespace troupe::cli
