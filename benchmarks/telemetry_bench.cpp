#include "telemetry_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/telemetry/exporter.hpp"

#include "measure.hpp"
#include "sample_event.hpp"
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <latch>
#include <optional>
#include <thread>
#include <utility>

namespace bench {

namespace {

constexpr std::size_t callers = 64;

// Port 1 is never listened on.
std::optional<troupe::telemetry::exporter> make_exporter(bool sends) {
  if (!sends)
    return std::nullopt;
  troupe::telemetry::options chosen;
  for (auto* each : {&chosen.traces, &chosen.metrics, &chosen.logs})
    each->url = "http://127.0.0.1:1/v1/records";
  chosen.on_warning = [](const std::string&) {};
  chosen.close_timeout = std::chrono::milliseconds(1);
  return troupe::telemetry::exporter::start(std::move(chosen)).value();
}

troupe::runtime
open_with(const std::optional<troupe::telemetry::exporter>& exporter,
          const std::string& store) {
  troupe::runtime_options options{.threads = 2};
  if (!store.empty())
    options.store = store;
  if (exporter) {
    options.plugins = {exporter->watcher()};
    options.on_commit = exporter->commits();
  }
  return troupe::runtime::open(std::move(options)).value();
}

using caller = std::function<troupe::task<>(const troupe::session_key& key,
                                            const std::atomic<bool>& stop,
                                            std::size_t& done)>;

// Closed loops, each on a session of its own.
round_result repeat(troupe::runtime& on, double seconds, const caller& call) {
  std::vector<troupe::session_key> keys;
  for (std::size_t index = 0; index < callers; ++index)
    keys.push_back(on.sessions()
                     .create({"app", fmt::format("user-{}", index), "s"})
                     .value()
                     .key());
  std::vector<std::size_t> done(callers);
  std::atomic<bool> stop{false};
  std::latch ended(callers);
  const stopwatch watch;
  for (std::size_t index = 0; index < callers; ++index)
    troupe::start(call(keys[index], stop, done[index]),
                  [&ended](std::exception_ptr failure) {
                    if (failure)
                      std::terminate();
                    ended.count_down();
                  });
  while (watch.seconds() < seconds)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  stop = true;
  ended.wait();
  round_result made{watch.seconds(), watch.cpu_seconds(), 0, {}};
  for (const auto each : done)
    made.operations += each;
  return made;
}

round_result append(bool sends, double seconds, const std::string& store) {
  const auto exporter = make_exporter(sends);
  auto on = open_with(exporter, store);
  std::atomic<std::size_t> next{0};
  return repeat(
    on,
    seconds,
    [&on, &next](troupe::session_key key,
                 const std::atomic<bool>& stop,
                 std::size_t& done) -> troupe::task<> {
      while (!stop.load(std::memory_order_relaxed)) {
        auto said = build_event(next.fetch_add(1, std::memory_order_relaxed));
        const auto stored
          = co_await on.sessions().append_event(key, std::move(said));
        stored.value();
        ++done;
      }
    });
}

round_result run_agent(bool sends, double seconds) {
  const auto exporter = make_exporter(sends);
  auto on = open_with(exporter, {});
  const auto root = troupe::custom(
    "speaker", [](troupe::invocation_context& context) -> troupe::agent_run {
      co_await context.emit(troupe::text("done"));
    });
  return repeat(on,
                seconds,
                [&on, root](troupe::session_key key,
                            const std::atomic<bool>& stop,
                            std::size_t& done) -> troupe::task<> {
                  while (!stop.load(std::memory_order_relaxed)) {
                    auto started = on.run(root, key, "go");
                    const auto ended = co_await started.wait();
                    ended.value();
                    ++done;
                  }
                });
}

void print_cost(const char* what,
                std::size_t rounds,
                const std::function<round_result(bool sends)>& side) {
  const auto made = alternate(
    rounds, {[&side] { return side(false); }, [&side] { return side(true); }});
  fmt::print("{:<40} {:>8.2f} us CPU without, {:>8.2f} us with: {:+.1f} %\n",
             what,
             made[0].cpu,
             made[1].cpu,
             100 * (made[1].cpu / made[0].cpu - 1));
  std::fflush(stdout);
}

} // namespace

void pay_for_telemetry(const telemetry_settings& settings) {
  fmt::print("\ntelemetry whose receiver refuses connections, {} at a time\n",
             callers);
  print_cost("append, in memory", settings.rounds, [&](bool sends) {
    return append(sends, settings.seconds, {});
  });
  print_cost("append, SQLite", settings.rounds, [&](bool sends) {
    const auto path = settings.folder + "/telemetry.db";
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(path + suffix);
    const auto made = append(sends, settings.seconds, "sqlite:" + path);
    for (const char* suffix : {"", "-wal", "-shm"})
      std::filesystem::remove(path + suffix);
    return made;
  });
  print_cost("run of one agent with one event",
             settings.rounds,
             [&](bool sends) { return run_agent(sends, settings.seconds); });
}

} // namespace bench
