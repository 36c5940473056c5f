// Numbers about the server itself, for monitors and for its page. They hold no
// data of users, so each caller may read them.

#include "troupe/server/adk/served.hpp"

#include <chrono>
#include <utility>

namespace troupe::serving {

namespace {

void tell_figures(const served_ptr& on, exchange asked) {
  using seconds = std::chrono::duration<double>;
  const seconds uptime = std::chrono::steady_clock::now() - on->started;
  const auto runs = on->runs.counts();
  json told = {{"uptime", uptime.count()},
               {"requests", on->threads->requests()},
               {"connections", on->threads->connections()},
               {"followers", on->follows.count()},
               {"runs",
                {{"active", runs.active},
                 {"started", runs.started},
                 {"failed", runs.failed}}}};
  if (const auto& commits = on->options.commits)
    told["store"]
      = {{"commits", commits->commits()}, {"changes", commits->changes()}};
  asked.to.send(json_response(told).with("cache-control", "no-store"));
}

} // namespace

void add_figures(router& routes, const served_ptr& on) {
  routes.add("GET", "/figures", handled_by(on, tell_figures));
}

} // namespace troupe::serving
