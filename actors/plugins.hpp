// Calling the hooks of plugins that only watch a run, or stand in for its
// message and its events.

#pragma once

#include "troupe/agents/plugin.hpp"

#include <string_view>
#include <vector>

namespace troupe::actors {

using watcher
  = std::function<void(const readonly_context&, const error&)> plugin::*;

/// Tells all plugins of a failure; gives it back, with what their hooks threw
/// added to the reason.
error tell_failure(const std::vector<plugin>& plugins,
                   watcher hook,
                   std::string_view place,
                   const readonly_context& context,
                   error failure);

/// What the first plugin makes of the message of a run, or the message. Fails
/// with `errc::callback_failed`.
result<content> watch_message(const std::vector<plugin>& plugins,
                              const session_key& session,
                              content message);

/// The same for an event that is about to be committed.
result<void> watch_event(const std::vector<plugin>& plugins,
                         const session_key& session,
                         event& said);

/// Calls every `after_run`; what one throws is thrown when all were called.
void tell_run_end(const std::vector<plugin>& plugins,
                  callback_context& context);

/// Calls every `close`. Fails with what they threw.
result<void> close_all(const std::vector<plugin>& plugins);

} // namespace troupe::actors
