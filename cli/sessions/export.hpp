// Exports sessions of a store for other ADK implementations.

#pragma once

#include "troupe/cli/terminal/output.hpp"
#include "troupe/runtime/runtime.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace troupe::cli {

/// Selects one session, all of a user, or all of an app.
struct export_choice {
  std::string app;
  std::optional<std::string> user;
  std::optional<std::string> session;
};

/// Receives exported sessions, one after another.
class session_sink {
public:
  session_sink() = default;
  session_sink(const session_sink&) = delete;
  session_sink& operator=(const session_sink&) = delete;
  virtual ~session_sink() = default;

  /// Begins a session. `shown` has its state and no events, and lives until
  /// `end`.
  virtual result<void> begin(const session& shown) = 0;

  /// Adds the next events. Returns their size in bytes, about.
  virtual result<std::size_t> add(const std::vector<event_ptr>& events) = 0;

  /// Ends the session.
  virtual result<void> end() = 0;

  /// Called after all sessions.
  virtual result<void> finish(session_service& sessions,
                              const export_choice& chosen);
};

/// Opens the store in `options` and hands each session to `target`, consistent
/// in itself.
///
/// The sessions are ordered by user, then by session id, both compared as
/// bytes. A session that exists all the time is written once, as of the moment
/// when its page of the list was read. A session that is created meanwhile is
/// written if its place in the order is not passed yet. A session that is
/// deleted before it begins is left out. The memory that is needed does not
/// depend on the number of sessions or events.
///
/// Fails with `errc::not_found` if a single chosen session does not exist, or
/// if a session is deleted while it is written, even if it is created again; it
/// is then incomplete. Fails with `errc::corrupt` if events are missing.
result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             session_sink& target);

/// The same with a line of session JSON for each session.
result<void> export_sessions(const export_choice& chosen,
                             runtime_options options,
                             output& target);

} // namespace troupe::cli
