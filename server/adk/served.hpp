// The parts of a server that its handlers share.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/server/adk/event_lines.hpp"
#include "troupe/server/adk/following.hpp"
#include "troupe/server/adk/running.hpp"
#include "troupe/server/http/io_threads.hpp"
#include "troupe/server/http/router.hpp"
#include "troupe/server/server_options.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::serving {

struct served {
  runtime& on; // Outlives the server.
  const std::map<std::string, agent> apps;
  const server_options options;
  const std::shared_ptr<io_threads> threads;
  running runs;
  following follows;
  event_lines lines;
  const std::chrono::steady_clock::time_point started
    = std::chrono::steady_clock::now();
};

using served_ptr = std::shared_ptr<served>;

/// Each of these adds the routes of one noun.
void add_apps(router& routes, const served_ptr& on);
void add_artifacts(router& routes, const served_ptr& on);
void add_events(router& routes, const served_ptr& on);
void add_figures(router& routes, const served_ptr& on);
void add_pages(router& routes, const served_ptr& on);
void add_progress(router& routes, const served_ptr& on);
void add_runs(router& routes, const served_ptr& on);
void add_sessions(router& routes, const served_ptr& on);
void add_time_travel(router& routes, const served_ptr& on);
void add_traces(router& routes, const served_ptr& on);
void add_unfinished_runs(router& routes, const served_ptr& on);

/// Returns all routes, and `GET /openapi.json`, which describes them.
router make_routes(const served_ptr& on);

/// Returns a route's handler that calls `handle` with the shared parts.
template <class Handle>
route_handler handled_by(const served_ptr& on, Handle handle) {
  return [on, handle](exchange asked) { handle(on, std::move(asked)); };
}

/// Returns an id as the core spells it, without the blanks around it. Lists of
/// the server and rights are looked up by it.
std::string spelled(std::string_view id);

/// Returns the key of the session that the path names.
session_key key_in(const path_values& path);

} // namespace troupe::serving
