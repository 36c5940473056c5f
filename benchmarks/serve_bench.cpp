#include "serve_bench.hpp"

#include "troupe/core/json.hpp"

#include "client_socket.hpp"
#include "follower_crowd.hpp"
#include "http_answer.hpp"
#include "http_load.hpp"
#include "measure.hpp"
#include "sample_event.hpp"
#include "served_app.hpp"
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace bench {

namespace {

using requests = std::vector<std::string>;

// -- requests ----

std::string sessions_of(const std::string& user) {
  return fmt::format("/apps/app/users/{}/sessions", user);
}

std::string path_of(const troupe::session_key& key) {
  return fmt::format("{}/{}", sessions_of(key.user), key.id);
}

std::string creation_of(const troupe::session_key& key) {
  return http_request(
    "POST", sessions_of(key.user), troupe::json{{"sessionId", key.id}}.dump());
}

std::string append_to(const troupe::session_key& key, std::size_t number) {
  return http_request("POST",
                      path_of(key) + "/events",
                      troupe::to_json(build_event(number)).dump());
}

std::string patch_of(const troupe::session_key& key, std::size_t number) {
  const troupe::json delta
    = {{"step", number}, {"progress", {{"done", number}, {"stage", "review"}}}};
  return http_request(
    "PATCH", path_of(key), troupe::json{{"stateDelta", delta}}.dump());
}

std::string run_on(const troupe::session_key& key) {
  const troupe::json message
    = {{"role", "user"}, {"parts", {{{"text", "Good morning!"}}}}};
  return http_request("POST",
                      "/run_sse",
                      troupe::json{{"appName", key.app},
                                   {"userId", key.user},
                                   {"sessionId", key.id},
                                   {"newMessage", message}}
                        .dump());
}

void send_all(const served_app& to, const requests& wanted) {
  if (send_requests(to.port, 1, wanted).refused != 0)
    throw std::runtime_error("the server has refused a session");
}

// -- compared sides ----

// One row: a server, and the requests of each round.
struct side {
  std::string name;
  const served_app* server;
  std::size_t connections;
  std::function<requests(const served_app&)> prepare;
  latency_end until = latency_end::last_byte;
  std::vector<double> client_cpu = {};
  std::size_t refused = 0;
  std::size_t sent = 0;

  round_result run() {
    const auto wanted = prepare(*server);
    const auto before = server->process->cpu_seconds();
    auto made = send_requests(server->port, connections, wanted, until);
    client_cpu.push_back(made.round.cpu_seconds * 1e6
                         / static_cast<double>(wanted.size()));
    made.round.cpu_seconds = server->process->cpu_seconds() - before;
    made.round.operations -= made.refused;
    refused += made.refused;
    sent += wanted.size();
    return std::move(made.round);
  }
};

void print_row(const side& measured, const summary& figures) {
  fmt::print(
    "{:<38} {:>4} {:>9.0f} {:>15} {:>9.0f} {:>9.0f} {:>9.1f} {:>9.1f}",
    measured.name,
    measured.connections,
    figures.rate,
    fmt::format("({:.0f}..{:.0f})", figures.rate_min, figures.rate_max),
    figures.p50,
    figures.p99,
    figures.cpu,
    median(measured.client_cpu));
  if (measured.refused != 0)
    fmt::print("  {} of {} refused", measured.refused, measured.sent);
  fmt::print("\n");
}

void compare(std::vector<side> sides, std::size_t rounds) {
  fmt::print("{:<38} {:>4} {:>9} {:>15} {:>9} {:>9} {:>9} {:>9}\n",
             "connections:",
             "",
             "per s",
             "(min..max)",
             "p50 us",
             "p99 us",
             "CPU us",
             "client's");
  std::vector<std::function<round_result()>> runs;
  for (auto& each : sides)
    runs.emplace_back([&each] { return each.run(); });
  const auto figures = alternate(rounds, runs);
  for (std::size_t index = 0; index < sides.size(); ++index)
    print_row(sides[index], figures[index]);
}

// Events on sessions in turn, numbered from `next`. No two events of a server
// have the same number, because an id takes effect once.
std::function<requests(const served_app&)>
appends(const std::vector<troupe::session_key>& keys,
        std::size_t count,
        std::size_t next = 0) {
  return [keys, count, next](const served_app&) mutable {
    requests made;
    for (std::size_t index = 0; index < count; ++index, ++next)
      made.push_back(append_to(keys[next % keys.size()], next));
    return made;
  };
}

// Changes of one session, which is a new one in each call.
std::function<requests(const served_app&)> patches(std::string name,
                                                   std::size_t count) {
  return
    [name = std::move(name), count, next = 0](const served_app& to) mutable {
      const troupe::session_key key{
        "app", "ann", fmt::format("{}-{}", name, ++next)};
      send_all(to, {creation_of(key)});
      requests made;
      for (std::size_t index = 0; index < count; ++index)
        made.push_back(patch_of(key, index));
      return made;
    };
}

// Runs, each on a new session.
std::function<requests(const served_app&)> runs(std::size_t count) {
  return [count, next = 0](const served_app& to) mutable {
    requests creations;
    requests made;
    for (std::size_t index = 0; index < count; ++index) {
      const troupe::session_key key{
        "app", "ann", fmt::format("run-{}", ++next)};
      creations.push_back(creation_of(key));
      made.push_back(run_on(key));
    }
    send_all(to, creations);
    return made;
  };
}

// -- sections ----

void append_over_http(app_folder& folder, std::size_t rounds) {
  constexpr std::size_t sessions = 64;
  const auto in_memory = serve_troupe(folder, "memory:");
  const auto stored = serve_troupe(folder, "sqlite:" + folder.new_file());
  const auto keys = make_keys(sessions);
  requests creations;
  for (const auto& key : keys)
    creations.push_back(creation_of(key));
  send_all(in_memory, creations);
  send_all(stored, creations);
  fmt::print("\nappends over HTTP, {} sessions\n", sessions);
  constexpr std::size_t other = 1'000'000'000;
  compare({{"append, in memory", &in_memory, 64, appends(keys, 30'000)},
           {"append, in memory", &in_memory, 1, appends(keys, 5'000, other)},
           {"append, over SQLite", &stored, 64, appends(keys, 20'000)},
           {"append, over SQLite", &stored, 1, appends(keys, 2'000, other)}},
          rounds);
}

std::size_t followers_possible() {
  constexpr rlim_t wanted = 10'000;
  constexpr rlim_t others = 100;
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  return std::min(wanted, files.rlim_cur - others);
}

void print_delays(std::vector<double> delays) {
  std::ranges::sort(delays);
  fmt::print("  one event, from its request until all followers have it: "
             "median {:.0f} ms, {:.0f} to {:.0f} ms in {} events\n",
             delays[delays.size() / 2],
             delays.front(),
             delays.back(),
             delays.size());
}

void follow_over_http(const app_folder& folder) {
  constexpr std::size_t events = 21;
  const auto count = followers_possible();
  const auto server = serve_troupe(folder, "memory:");
  const troupe::session_key key{"app", "ann", "followed"};
  const auto request = http_request("GET", path_of(key) + "/events?follow");
  send_all(server, {creation_of(key)});
  std::size_t next = 0;
  const client_socket writer(server.port);
  const auto time_event = [&](follower_crowd& readers) {
    const auto start = clock::now();
    writer.send(append_to(key, next++));
    return std::chrono::duration<double>(readers.await_event() - start).count()
           * 1e3;
  };
  // Memory that the first follower needs is not counted.
  follower_crowd first(server.port, request, 1);
  time_event(first);
  const auto before = server.process->resident_bytes();
  follower_crowd all(server.port, request, count);
  const auto opened = server.process->resident_bytes();
  std::vector<double> delays;
  while (delays.size() < events)
    delays.push_back(time_event(all));
  const auto after = server.process->resident_bytes();
  constexpr double mebibyte = 1024.0 * 1024.0;
  fmt::print("\n{} followers of one session over HTTP\n", count);
  fmt::print("  memory of the server: {:.1f} MiB, {:.0f} bytes per follower; "
             "after {} events {:.1f} MiB\n",
             static_cast<double>(opened) / mebibyte,
             static_cast<double>(opened - before) / static_cast<double>(count),
             events,
             static_cast<double>(after) / mebibyte);
  print_delays(std::move(delays));
}

double time_start(const app_folder& folder, const std::string& store) {
  const stopwatch watch;
  const auto server = serve_troupe(folder, store);
  send_all(server, {http_request("GET", "/health")});
  return watch.seconds() * 1e3;
}

void start_over_http(app_folder& folder) {
  constexpr std::size_t times = 21;
  const auto file = "sqlite:" + folder.new_file();
  time_start(folder, file); // Makes the file.
  std::vector<double> in_memory;
  std::vector<double> stored;
  for (std::size_t count = 0; count < times; ++count) {
    in_memory.push_back(time_start(folder, "memory:"));
    stored.push_back(time_start(folder, file));
  }
  fmt::print("\nfrom the start of `troupe serve` until /health is answered, "
             "medians of {}: {:.1f} ms in memory, {:.1f} ms over SQLite\n",
             times,
             median(std::move(in_memory)),
             median(std::move(stored)));
}

void compare_with_adk(app_folder& folder, const serve_settings& settings) {
  const auto version = adk_version(settings.python);
  const auto in_memory = serve_troupe(folder, "memory:");
  const auto stored = serve_troupe(folder, "sqlite:" + folder.new_file());
  served_app adk_memory;
  served_app adk_stored;
  std::vector<side> sides;
  const auto add = [&sides](const std::string& name,
                            const served_app& server,
                            std::size_t changes,
                            std::size_t runs_each) {
    for (const std::size_t connections : {1, 16})
      sides.push_back(
        {"PATCH of one session, " + name,
         &server,
         connections,
         patches(fmt::format("patched-{}", connections), changes)});
    sides.push_back({"first byte of /run_sse, " + name,
                     &server,
                     1,
                     runs(runs_each),
                     latency_end::first_byte});
  };
  add("in memory", in_memory, 200, 1'000);
  add("over SQLite", stored, 200, 1'000);
  if (version.empty()) {
    fmt::print("\nwithout ADK Python: {} has no google-adk (--adk-python)\n",
               settings.python);
  } else {
    adk_memory = serve_adk(settings.python, folder, "memory://");
    adk_stored = serve_adk(
      settings.python, folder, "sqlite+aiosqlite:///" + folder.new_file());
    add("ADK, in memory", adk_memory, 200, 100);
    add("ADK, over SQLite", adk_stored, 200, 100);
    fmt::print("\nbeside the server of ADK Python {}\n", version);
  }
  compare(std::move(sides), settings.rounds);
}

} // namespace

void serve_over_http(const serve_settings& settings) {
  app_folder folder;
  append_over_http(folder, settings.rounds);
  follow_over_http(folder);
  start_over_http(folder);
  compare_with_adk(folder, settings);
}

} // namespace bench
