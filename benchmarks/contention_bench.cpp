#include "contention_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/runtime/runtime.hpp"

#include "child_process.hpp"
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <latch>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t callers_per_process = 64;
// Time to open the store and to create the sessions before the round starts.
constexpr std::chrono::seconds time_to_open{2};

enum class scopes { own_apps, one_app, one_user };

constexpr std::array<scopes, 3> all_scopes{
  scopes::own_apps, scopes::one_app, scopes::one_user};
constexpr std::array<std::size_t, 3> all_processes{1, 2, 4};

const char* to_string(scopes which) {
  switch (which) {
  case scopes::own_apps:
    return "an app: key for each process";
  case scopes::one_app:
    return "one app: key";
  case scopes::one_user:
    return "one user: key";
  }
  return "";
}

// Result of one process.
struct share {
  double appends = 0;
  double p99_ms = 0;
};

std::uint64_t now_in_microseconds() {
  return static_cast<std::uint64_t>(
    std::chrono::duration_cast<std::chrono::microseconds>(
      clock::now().time_since_epoch())
      .count());
}

void remove_file_of(const std::string& store) {
  constexpr std::string_view scheme = "sqlite:";
  if (store.starts_with(scheme))
    for (const auto* ending : {"", "-wal", "-shm"})
      std::filesystem::remove(store.substr(scheme.size()) + ending);
}

// An unused name for the apps of one round: a database keeps those of earlier
// rounds.
std::string next_name() {
  static std::size_t rounds = 0;
  return fmt::format("bench-{}-{}", ::getpid(), ++rounds);
}

std::vector<std::string> command_of(const contender& one) {
  return {"/proc/self/exe",
          "--contender",
          one.app,
          one.user,
          one.key,
          fmt::format("{}", one.number),
          fmt::format("{}", one.seconds),
          fmt::format("{}", one.start),
          "--store",
          one.store};
}

std::vector<share> append_once(const contention_settings& settings,
                               scopes which,
                               std::size_t processes) {
  remove_file_of(settings.store);
  const auto name = next_name();
  const auto start = now_in_microseconds()
                     + static_cast<std::uint64_t>(
                       std::chrono::microseconds(time_to_open).count());
  std::vector<std::unique_ptr<child_process>> started;
  for (std::size_t number = 0; number < processes; ++number) {
    const auto own = fmt::format("{}-{}", name, number);
    started.push_back(std::make_unique<child_process>(
      command_of({.store = settings.store,
                  .app = which == scopes::own_apps ? own : name,
                  .user = which == scopes::one_user ? "user" : own,
                  .key = which == scopes::one_user ? "user:count" : "app:count",
                  .number = number,
                  .seconds = settings.seconds,
                  .start = start})));
  }
  std::vector<share> made;
  for (const auto& each : started) {
    std::istringstream line(each->read_line());
    share read;
    if (!(line >> read.appends >> read.p99_ms))
      throw std::runtime_error("a process of the benchmark has failed");
    made.push_back(read);
  }
  return made;
}

// Medians over the rounds of one row.
class row {
public:
  void add(const std::vector<share>& round, double seconds) {
    double sum = 0;
    double least = round.front().appends;
    double slowest = 0;
    for (const auto& each : round) {
      sum += each.appends;
      least = std::min(least, each.appends);
      slowest = std::max(slowest, each.p99_ms);
    }
    rates_.push_back(sum / seconds);
    shares_.push_back(
      sum == 0 ? 0 : least * static_cast<double>(round.size()) / sum);
    p99s_.push_back(slowest);
  }

  double rate() const { return median(rates_); }

  void print(scopes which, std::size_t processes, double of_own) const {
    fmt::print("{:<30} {:>9} {:>10.0f} {:>13.2f} {:>11.2f} {:>9.1f}\n",
               to_string(which),
               processes,
               rate(),
               of_own,
               median(shares_),
               median(p99s_));
    std::fflush(stdout);
  }

private:
  std::vector<double> rates_;
  std::vector<double> shares_;
  std::vector<double> p99s_;
};

} // namespace

void append_in_processes(const contention_settings& settings) {
  fmt::print(
    "\nprocesses that append to one store, {}, {} appends under way in "
    "each, {} rounds of {} s, medians\n"
    "{:<30} {:>9} {:>10} {:>13} {:>11} {:>9}\n",
    settings.store,
    callers_per_process,
    settings.rounds,
    settings.seconds,
    "each append counts up",
    "processes",
    "appends/s",
    "of own apps",
    "least share",
    "p99 ms");
  for (const auto processes : all_processes) {
    std::array<row, all_scopes.size()> rows;
    for (std::size_t round = 0; round < settings.rounds; ++round)
      for (std::size_t kind = 0; kind < all_scopes.size(); ++kind)
        rows[kind].add(append_once(settings, all_scopes[kind], processes),
                       settings.seconds);
    for (std::size_t kind = 0; kind < all_scopes.size(); ++kind)
      rows[kind].print(
        all_scopes[kind], processes, rows[kind].rate() / rows[0].rate());
  }
  remove_file_of(settings.store);
}

void append_as(const contender& one) {
  troupe::runtime_options options;
  options.threads = 2;
  options.store = one.store;
  auto runtime = troupe::runtime::open(options).value();
  std::vector<troupe::session_key> keys;
  for (std::size_t index = 0; index < callers_per_process; ++index) {
    keys.push_back(
      {one.app, one.user, fmt::format("s{}-{}", one.number, index)});
    runtime.sessions().create(keys.back()).value();
  }
  const auto begin = clock::time_point(std::chrono::microseconds(one.start));
  const auto end = begin
                   + std::chrono::duration_cast<clock::duration>(
                     std::chrono::duration<double>(one.seconds));
  std::vector<std::vector<double>> latencies(callers_per_process);
  const auto call = [&](std::size_t index) -> troupe::task<> {
    for (auto before = clock::now(); before < end; before = clock::now()) {
      troupe::state written;
      written.add(one.key, 1);
      auto said = std::make_shared<troupe::event>();
      said->author = "bench";
      said->actions.state_delta = written.take();
      const auto stored = co_await runtime.sessions().append_event(
        keys[index], troupe::event_ptr(std::move(said)));
      stored.value();
      const auto now = clock::now();
      if (now <= end)
        latencies[index].push_back(
          std::chrono::duration<double, std::milli>(now - before).count());
    }
  };
  std::latch ended(callers_per_process);
  std::this_thread::sleep_until(begin);
  for (std::size_t index = 0; index < callers_per_process; ++index)
    troupe::start(call(index), [&ended](std::exception_ptr failure) {
      if (failure)
        std::rethrow_exception(failure);
      ended.count_down();
    });
  ended.wait();
  std::vector<double> all;
  for (const auto& each : latencies)
    all.insert(all.end(), each.begin(), each.end());
  std::ranges::sort(all);
  const auto p99 = all.empty() ? 0 : all[all.size() * 99 / 100];
  fmt::print("{} {}\n", all.size(), p99);
  std::fflush(stdout);
  runtime.shut_down().value();
}

} // namespace bench
