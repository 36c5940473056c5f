// Prints every figure of benchmarks/README.md.

#include "append_bench.hpp"
#include "run_bench.hpp"
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <set>
#include <thread>

int main(int argc, char** argv) {
  CLI::App program("Benchmarks of troupe beside a global mutex");
  bench::append_settings settings;
  std::set<std::string> only;
  program
    .add_option("--only", only, "Sections to run: tasks, threads, growth, runs")
    ->check(CLI::IsMember({"tasks", "threads", "growth", "runs"}));
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
  CLI11_PARSE(program, argc, argv);
  const auto wanted = [&only](const char* section) {
    return only.empty() || only.contains(section);
  };
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
  if (wanted("runs")) {
    fmt::print("\nruns, reads, memory\n");
    bench::run_sequence(settings.rounds);
    bench::run_parallel(settings.rounds);
    bench::run_many_lanes(settings.rounds);
    bench::get_recent(settings.rounds);
    bench::idle_sessions();
  }
}
