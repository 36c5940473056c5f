// Calls the hooks of plugins that watch a run, or replace its message and
// its events.

#pragma once

#include "troupe/agents/plugin.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::actors {

using watcher
  = plain_function<void(const readonly_context&, const error&)> plugin::*;

/// Tells all plugins of a failure. Returns it, with the errors that the hooks
/// threw added to its message.
error tell_failure(const std::vector<plugin>& plugins,
                   watcher hook,
                   std::string_view place,
                   const readonly_context& context,
                   error failure);

/// The message that the first answering plugin puts in place of `message`; else
/// `message`. Fails with `errc::callback_failed`.
result<content> watch_message(const std::vector<plugin>& plugins,
                              const session_key& session,
                              content message);

/// Lets plugins see and replace an event that is about to be committed. Author,
/// branch, ids and pause markers are kept. Fails with `errc::callback_failed`.
result<void> watch_event(const std::vector<plugin>& plugins,
                         const session_key& session,
                         event& said);

/// Calls every `after_event`. Exceptions become warnings, if `on_warning` is
/// not empty.
void tell_event(
  const std::vector<plugin>& plugins,
  const session_key& session,
  const event& said,
  const std::function<void(const std::string& warning)>& on_warning);

/// Calls every `after_run`. The first exception is rethrown after all
/// were called.
void tell_run_end(const std::vector<plugin>& plugins,
                  callback_context& context);

/// Calls every `close`. Fails with the first exception.
result<void> close_all(const std::vector<plugin>& plugins);

} // namespace troupe::actors
