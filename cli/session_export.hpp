// Sessions of a store on their way to other ADKs, one line each.

#pragma once

#include "troupe/cli/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <optional>
#include <string>

namespace troupe::cli {

/// What to export: a session, or all of a user, or all of an app.
struct export_choice {
  std::string app;
  std::optional<std::string> user;
  std::optional<std::string> session;
};

/// Opens the store that `options` name and writes each session to `target` as a
/// line of session JSON, as of one moment of its own.
///
/// Newest update first, and each as it is found; then those that were updated
/// meanwhile and therefore missed. Events are read and written in pieces, so
/// that memory does not grow with a session; 16 bytes are kept of each session.
/// A session that is deleted before its line begins is left out.
///
/// Fails with `errc::not_found` if the one session does not exist, or a session
/// is deleted while its line is written, which then is incomplete; and with
/// `errc::corrupt` if events are missing.
result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target);

} // namespace troupe::cli
