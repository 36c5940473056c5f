// Prints the figures of benchmarks/README.md.

#include "append_bench.hpp"
#include "contention_bench.hpp"
#include "follow_bench.hpp"
#include "graph_bench.hpp"
#include "model_bench.hpp"
#include "run_bench.hpp"
#include "serve_bench.hpp"
#include "store_bench.hpp"
#include "telemetry_bench.hpp"
#include "tool_bench.hpp"
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

void allow_many_sockets() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
}

} // namespace

int main(int argc, char** argv) {
  CLI::App program("Benchmarks of troupe beside a global mutex");
  bench::append_settings settings;
  std::set<std::string> only;
  program
    .add_option(
      "--only",
      only,
      "Sections to run: tasks, threads, growth, runs, graphs, models, "
      "tools, durable, stored, follow, contention, telemetry, serve")
    ->check(CLI::IsMember({"tasks",
                           "threads",
                           "growth",
                           "runs",
                           "graphs",
                           "models",
                           "tools",
                           "durable",
                           "stored",
                           "follow",
                           "contention",
                           "telemetry",
                           "serve"}));
  program.add_option("--rounds", settings.rounds, "Rounds per figure")
    ->capture_default_str();
  program.add_option("--seconds", settings.seconds, "Length of a round")
    ->capture_default_str();
  program.add_option("--callers",
                     settings.callers,
                     "Takes only the rows with that many callers");
  program.add_option("--sessions",
                     settings.sessions,
                     "Takes only the rows with that many sessions");
  bench::store_settings stored;
  program
    .add_option("--store",
                stored.store,
                "Store of the durable sections; a SQLite file there is "
                "replaced")
    ->capture_default_str();
  program
    .add_option("--store-seconds",
                stored.seconds,
                "How long durable appends are sustained per row")
    ->capture_default_str();
  program.add_flag("--store-blocked",
                   stored.blocked,
                   "Callers of durable appends are threads that wait");
  program
    .add_option(
      "--store-events", stored.events, "Events in the store that is read")
    ->capture_default_str();
  std::string durability = "durable";
  program
    .add_option(
      "--durability", durability, "What is promised: durable, os, none")
    ->check(CLI::IsMember({"durable", "os", "none"}))
    ->capture_default_str();
  bench::serve_settings served;
  program
    .add_option("--adk-python",
                served.python,
                "Python of the section serve; with google-adk, ADK's server is "
                "measured too")
    ->capture_default_str();
  std::vector<std::string> contender;
  program.add_option("--contender", contender)->expected(6)->group("");
  CLI11_PARSE(program, argc, argv);
  if (!contender.empty()) {
    bench::append_as({.store = stored.store,
                      .app = contender[0],
                      .user = contender[1],
                      .key = contender[2],
                      .number = std::stoul(contender[3]),
                      .seconds = std::stod(contender[4]),
                      .start = std::stoull(contender[5])});
    return 0;
  }
  served.rounds = settings.rounds;
  stored.callers = settings.callers;
  stored.sessions = settings.sessions;
  stored.durability = troupe::durability_from(durability).value();
  const auto wanted = [&only](const char* section) {
    return only.empty() || only.contains(section);
  };
  // Forks, so it is made before any thread.
  std::optional<bench::answering_process> server;
  if (wanted("models") || wanted("serve"))
    allow_many_sockets();
  if (wanted("models"))
    server.emplace();
  fmt::print("{} cores, {} rounds of {} s, medians\n",
             std::thread::hardware_concurrency(),
             settings.rounds,
             settings.seconds);
  if (wanted("tasks"))
    bench::append_by_tasks(settings);
  if (wanted("threads"))
    bench::append_by_threads(settings);
  if (wanted("growth"))
    bench::append_as_it_grows(settings);
  if (wanted("tools"))
    bench::call_tools(settings.rounds, settings.seconds);
  if (wanted("runs")) {
    fmt::print("\nruns, reads, memory\n");
    bench::run_sequence(settings.rounds);
    bench::run_parallel(settings.rounds);
    bench::run_many_lanes(settings.rounds);
    bench::run_turns(settings.rounds);
    bench::run_history(settings.rounds);
    bench::run_many_models(settings.rounds);
    bench::get_recent(settings.rounds);
    bench::idle_sessions();
  }
  if (wanted("graphs"))
    bench::run_graphs(settings.rounds);
  if (server) {
    fmt::print("\nmodels over HTTP, on loopback\n");
    bench::ask_many(*server, settings.rounds);
    bench::time_first_words(*server);
    bench::time_cancels(*server);
    bench::read_streams(settings.rounds);
  }
  if (wanted("durable"))
    bench::append_durably(stored);
  if (wanted("stored"))
    bench::read_stored(stored);
  if (wanted("follow"))
    bench::follow_sessions({settings.rounds});
  if (wanted("contention"))
    bench::append_in_processes(
      {.rounds = settings.rounds, .store = stored.store});
  if (wanted("telemetry"))
    bench::pay_for_telemetry(
      {.rounds = settings.rounds, .seconds = settings.seconds});
  if (wanted("serve"))
    bench::serve_over_http(served);
}
