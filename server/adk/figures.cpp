// Numbers about the server itself, for monitors and for its page. They hold no
// data of users, so each caller may read them.

#include "troupe/server/adk/failure.hpp"
#include "troupe/server/adk/served.hpp"

#include <fmt/format.h>

#include <chrono>
#include <iterator>
#include <string>
#include <string_view>
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

// -- for Prometheus ----

template <class Number>
void add_metric(std::string& to,
                std::string_view name,
                std::string_view type,
                std::string_view help,
                Number value) {
  fmt::format_to(std::back_inserter(to),
                 "# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n",
                 name,
                 help,
                 type,
                 value);
}

void tell_metrics(const served_ptr& on, exchange asked) {
  using seconds = std::chrono::duration<double>;
  const seconds uptime = std::chrono::steady_clock::now() - on->started;
  const auto runs = on->runs.counts();
  std::string text;
  const auto gauge
    = [&text](std::string_view name, std::string_view help, auto value) {
        add_metric(text, name, "gauge", help, value);
      };
  const auto counter
    = [&text](std::string_view name, std::string_view help, auto value) {
        add_metric(text, name, "counter", help, value);
      };
  gauge("troupe_uptime_seconds", "Time since the start.", uptime.count());
  counter("troupe_http_requests_total",
          "Requests since the start.",
          on->threads->requests());
  gauge(
    "troupe_http_connections", "Open connections.", on->threads->connections());
  gauge("troupe_followers",
        "Requests that follow a session or a state.",
        on->follows.count());
  gauge("troupe_runs_active", "Runs that have not ended.", runs.active);
  counter("troupe_runs_started_total", "Runs since the start.", runs.started);
  counter("troupe_runs_failed_total",
          "Failed and cancelled runs since the start.",
          runs.failed);
  if (const auto& commits = on->options.commits) {
    counter("troupe_store_commits_total",
            "Commits since the start.",
            commits->commits());
    counter("troupe_store_changes_total",
            "Changes in these commits.",
            commits->changes());
  }
  response answer;
  answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
  answer.body = std::move(text);
  asked.to.send(std::move(answer).with("cache-control", "no-store"));
}

// -- for probes ----

// Reads from the store: a server whose store does not answer is not ready.
void tell_readiness(const served_ptr& on, exchange asked) {
  list_request first;
  first.app = on->apps.empty() ? "app" : on->apps.begin()->first;
  first.limit = 1;
  on->on.sessions()
    .list(std::move(first))
    .then([to = asked.to](const result<session_page>& read) {
      to.send(read ? json_text_response(R"({"status":"ready"})")
                   : detail(503, shown_message(read.error())));
    });
}

} // namespace

void add_figures(router& routes, const served_ptr& on) {
  routes.add("GET", "/figures", handled_by(on, tell_figures));
  routes.add("GET", "/metrics", handled_by(on, tell_metrics));
  routes.add("GET", "/ready", handled_by(on, tell_readiness));
}

} // namespace troupe::serving
