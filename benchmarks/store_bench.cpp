#include "store_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/runtime/runtime.hpp"

#include "naive_sqlite.hpp"
#include "sample_event.hpp"
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <latch>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace bench {

namespace {

namespace fs = std::filesystem;
using troupe::event_ptr;
using troupe::session_key;

constexpr std::string_view sqlite_scheme = "sqlite:";

bool is_file(const store_settings& settings) {
  return settings.store.starts_with(sqlite_scheme);
}

fs::path file_of(const store_settings& settings) {
  return settings.store.substr(sqlite_scheme.size());
}

void remove_file(const fs::path& file) {
  for (const auto* ending : {"", "-wal", "-shm"})
    fs::remove(file.string() + ending);
}

// Empties the store, if that is possible.
void start_anew(const store_settings& settings) {
  if (is_file(settings))
    remove_file(file_of(settings));
}

// The conditions of a measurement, printed with each line.
std::string circumstances(const store_settings& settings) {
  return fmt::format("; {}, fdatasync {:.0f}/s",
                     to_string(settings.durability),
                     is_file(settings) ? fdatasync_rate(file_of(settings)) : 0);
}

double naive_rate(const fs::path& beside,
                  const std::vector<session_key>& keys,
                  double seconds) {
  const fs::path file = beside.string() + ".naive";
  remove_file(file);
  std::size_t count = 0;
  double rate = 0;
  {
    naive_sqlite naive(file);
    std::minstd_rand random(7);
    const stopwatch watch;
    while (watch.seconds() < seconds) {
      naive.append(keys[random() % keys.size()], build_event(count));
      ++count;
    }
    rate = static_cast<double>(count) / watch.seconds();
  }
  remove_file(file);
  return rate;
}

troupe::runtime open_runtime(const store_settings& settings,
                             std::size_t live_sessions = 20'000) {
  return troupe::runtime::open({.store = settings.store,
                                .durability = settings.durability,
                                .threads = 2,
                                .append_wait_max = std::nullopt,
                                .live_sessions_max = live_sessions})
    .value();
}

void create_all(troupe::runtime& runtime,
                const std::vector<session_key>& keys) {
  std::latch created(static_cast<std::ptrdiff_t>(keys.size()));
  for (const auto& key : keys)
    runtime.sessions().create(key).then(
      [&created](troupe::result<troupe::session> made) {
        made.value();
        created.count_down();
      });
  created.wait();
}

// How appends wait for their answers.
enum class waiting { coroutines, blocked_threads };

// A closed loop of `callers` until `count` events are appended or `seconds`
// have passed.
round_result append_by(troupe::runtime& runtime,
                       const std::vector<session_key>& keys,
                       std::size_t callers,
                       waiting how,
                       double seconds,
                       std::size_t count,
                       std::atomic<std::size_t>& numbers) {
  std::vector<std::vector<std::uint32_t>> latencies(callers);
  std::latch ended(static_cast<std::ptrdiff_t>(callers));
  const auto first = numbers.load();
  const stopwatch watch;
  const auto note = [&latencies](std::size_t index, clock::time_point before) {
    latencies[index].push_back(static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now()
                                                           - before)
        .count()));
  };
  // Returns the next append, or nothing at the end.
  const auto next = [&](std::minstd_rand& random)
    -> std::optional<troupe::pending<troupe::event_ptr>> {
    const auto number = numbers.fetch_add(1);
    if (watch.seconds() >= seconds || number - first >= count)
      return std::nullopt;
    return runtime.sessions().append_event(
      keys[random() % keys.size()],
      std::make_shared<const troupe::event>(build_event(number)));
  };
  const auto seed_of = [](std::size_t index) {
    return static_cast<std::minstd_rand::result_type>(index + 1);
  };
  const auto call = [&](std::size_t index) -> troupe::task<> {
    std::minstd_rand random(seed_of(index));
    for (auto before = clock::now(); auto append = next(random);
         before = clock::now()) {
      const auto stored = co_await *std::move(append);
      stored.value();
      note(index, before);
    }
  };
  const auto block = [&](std::size_t index) {
    std::minstd_rand random(seed_of(index));
    for (auto before = clock::now(); auto append = next(random);
         before = clock::now()) {
      append->value();
      note(index, before);
    }
    ended.count_down();
  };
  std::vector<std::jthread> threads;
  for (std::size_t index = 0; index < callers; ++index)
    if (how == waiting::blocked_threads)
      threads.emplace_back(block, index);
    else
      troupe::start(call(index), [&ended](std::exception_ptr failure) {
        if (failure)
          std::rethrow_exception(failure);
        ended.count_down();
      });
  ended.wait();
  round_result made{watch.seconds(), watch.cpu_seconds(), 0, {}};
  for (const auto& each : latencies) {
    made.operations += each.size();
    made.latencies.insert(made.latencies.end(), each.begin(), each.end());
  }
  return made;
}

double milliseconds(const stopwatch& watch) {
  return watch.seconds() * 1e3;
}

// Drops a file from the page cache, as after a restart of the machine.
void forget_pages(const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return;
  ::fdatasync(descriptor);
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
  ::close(descriptor);
}

double median_of(std::size_t rounds, const std::function<double()>& measure) {
  std::vector<double> all;
  for (std::size_t round = 0; round < rounds; ++round)
    all.push_back(measure());
  return median(std::move(all));
}

// Microseconds of a single caller's append, and of a get of the last 50 events.
double append_cost(troupe::runtime& runtime,
                   const session_key& key,
                   std::atomic<std::size_t>& numbers) {
  constexpr int count = 300;
  const stopwatch watch;
  for (int index = 0; index < count; ++index)
    runtime.sessions()
      .append_event(key, build_event(numbers.fetch_add(1)))
      .value();
  return watch.seconds() * 1e6 / count;
}

double get_cost(troupe::runtime& runtime, const session_key& key) {
  constexpr int count = 300;
  const stopwatch watch;
  for (int index = 0; index < count; ++index)
    runtime.sessions().get(key, {.num_recent_events = 50}).value();
  return watch.seconds() * 1e6 / count;
}

struct beginning {
  double milliseconds;
  double megabytes; // Growth of resident memory until then.
};

// Time from the start of a run, on a session that is not in memory, until its
// agent runs.
beginning begin_cost(const store_settings& settings,
                     const session_key& key,
                     troupe::history_extent reads) {
  auto runtime = open_runtime(settings);
  const auto before = resident_bytes();
  beginning began{};
  const stopwatch watch;
  const auto agent = troupe::custom(
    {.name = "agent",
     .run = [&](troupe::invocation_context&) -> troupe::agent_run {
       began.milliseconds = milliseconds(watch);
       const auto now = std::max(resident_bytes(), before);
       began.megabytes = static_cast<double>(now - before) / 1e6;
       co_return;
     },
     .reads = reads});
  runtime.run(agent, key, "go").wait().value();
  return began;
}

// Reads a session at earlier revisions, without events, spread over its length.
void read_revisions(const store_settings& settings,
                    const session_key& key,
                    std::size_t newest) {
  constexpr std::size_t reads = 101;
  auto runtime = open_runtime(settings);
  std::vector<double> times;
  for (std::size_t read = 0; read < reads; ++read) {
    // A prime stride, so that the distances to kept states differ.
    const auto revision = (read * 1'000'003) % newest;
    const auto began = std::chrono::steady_clock::now();
    runtime.sessions()
      .get(key, {.num_recent_events = 0, .at = revision})
      .value();
    times.push_back(std::chrono::duration<double, std::milli>(
                      std::chrono::steady_clock::now() - began)
                      .count());
  }
  const auto longest = *std::ranges::max_element(times);
  fmt::print("  reading one of {} revisions: {:.2f} ms, at most {:.2f}{}\n",
             newest,
             median(std::move(times)),
             longest,
             circumstances(settings));
  std::fflush(stdout);
}

// Forks a session at revisions spread over its length, then deletes its older
// half. The rows are deleted later.
void fork_and_trim(const store_settings& settings,
                   const session_key& key,
                   std::size_t newest) {
  constexpr std::size_t forks = 21;
  auto runtime = open_runtime(settings);
  std::vector<double> times;
  for (std::size_t fork = 0; fork < forks; ++fork) {
    const auto revision = (fork * 1'000'003) % newest;
    const stopwatch watch;
    runtime.sessions().fork(key, {.at = revision}).value();
    times.push_back(milliseconds(watch));
  }
  const auto longest = *std::ranges::max_element(times);
  fmt::print("  a fork at one of {} revisions: {:.2f} ms, at most {:.2f}{}\n",
             newest,
             median(std::move(times)),
             longest,
             circumstances(settings));
  if (!is_file(settings)) {
    std::fflush(stdout);
    return;
  }
  const stopwatch watch;
  runtime.sessions().trim(key, newest / 2).value();
  fmt::print("  a trim of its older half: {:.2f} ms{}\n",
             milliseconds(watch),
             circumstances(settings));
  std::fflush(stdout);
}

void begin_runs(const store_settings& settings,
                std::atomic<std::size_t>& numbers) {
  constexpr std::size_t events = 2'000'000;
  const session_key key{"app", "user-2", "long"};
  {
    auto runtime = open_runtime(settings);
    create_all(runtime, {key});
    append_by(runtime, {key}, 4'096, waiting::coroutines, 1e9, events, numbers);
  }
  const auto show =
    [&](const char* what, troupe::history_extent reads, std::size_t rounds) {
      std::vector<double> times;
      std::vector<double> sizes;
      for (std::size_t round = 0; round < rounds; ++round) {
        const auto began = begin_cost(settings, key, reads);
        times.push_back(began.milliseconds);
        sizes.push_back(began.megabytes);
      }
      fmt::print("  a run on a session of {} events that reads {} begins after "
                 "{:.1f} ms, in {:.0f} MB{}\n",
                 events,
                 what,
                 median(std::move(times)),
                 median(std::move(sizes)),
                 circumstances(settings));
      std::fflush(stdout);
    };
  read_revisions(settings, key, events);
  show("nothing", troupe::history_extent::none(), 5);
  show("the newest 20", troupe::history_extent::newest(20), 5);
  show("all", troupe::history_extent::all(), 1);
  fork_and_trim(settings, key, events);
}

// One row of the table.
void append_durably(const store_settings& settings,
                    const std::vector<session_key>& keys,
                    std::size_t callers) {
  const auto beside
    = is_file(settings) ? file_of(settings) : fs::path("build/bench");
  start_anew(settings);
  std::atomic<std::size_t> numbers{0};
  const auto naive = naive_rate(beside, keys, std::min(2.0, settings.seconds));
  const auto synced = fdatasync_rate(beside);
  auto runtime = open_runtime(settings);
  create_all(runtime, keys);
  const auto row = summarize({append_by(
    runtime,
    keys,
    callers,
    settings.blocked ? waiting::blocked_threads : waiting::coroutines,
    settings.seconds,
    SIZE_MAX,
    numbers)});
  fmt::print("{:>8} {:>8} {:>10.0f} {:>9.2f} {:>9.2f} {:>9.2f} {:>9.1f} "
             "{:>12.0f} {:>10.0f}  {}\n",
             keys.size(),
             callers,
             row.rate,
             row.p50 / 1e3,
             row.p99 / 1e3,
             row.p999 / 1e3,
             row.cpu,
             synced,
             naive,
             to_string(settings.durability));
  std::fflush(stdout);
  runtime.shut_down().value();
}

} // namespace

void append_durably(const store_settings& settings) {
  constexpr std::array<std::size_t, 3> all_sessions{64, 1'000, 10'000};
  constexpr std::array<std::size_t, 5> all_callers{1, 8, 64, 512, 4'096};
  fmt::print(
    "\ndurable appends, {}, durability {}, {} s per row, folding "
    "included\n"
    "{:>8} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12} {:>10}  durability\n",
    settings.store,
    to_string(settings.durability),
    settings.seconds,
    "sessions",
    "callers",
    "appends/s",
    "p50 ms",
    "p99 ms",
    "p99.9 ms",
    "CPU us",
    "fdatasync/s",
    "naive/s");
  for (const auto sessions : all_sessions)
    for (const auto callers : all_callers)
      if ((settings.sessions == 0 || settings.sessions == sessions)
          && (settings.callers == 0 || settings.callers == callers))
        append_durably(settings, make_keys(sessions), callers);
  start_anew(settings);
}

void read_stored(const store_settings& settings) {
  fmt::print("\na full store, {}, durability {}\n",
             settings.store,
             to_string(settings.durability));
  start_anew(settings);
  const auto keys = make_keys(10'000);
  std::atomic<std::size_t> numbers{0};
  const session_key probe{"app", "user-0", "probe"};
  const auto costs = [&](std::size_t events) {
    auto runtime = open_runtime(settings);
    const auto append
      = median_of(5, [&] { return append_cost(runtime, probe, numbers); });
    const auto get = median_of(5, [&] { return get_cost(runtime, probe); });
    fmt::print("  {:>9} unrelated events: append {:.0f} us, get of 50 {:.1f} "
               "us{}\n",
               events,
               append,
               get,
               circumstances(settings));
    std::fflush(stdout);
  };
  {
    auto runtime = open_runtime(settings);
    create_all(runtime, keys);
    create_all(runtime, {probe});
    append_by(runtime, keys, 64, waiting::coroutines, 1e9, 1'000, numbers);
  }
  costs(1'000);
  {
    auto runtime = open_runtime(settings);
    append_by(
      runtime, keys, 4'096, waiting::coroutines, 1e9, settings.events, numbers);
    runtime.shut_down().value();
  }
  costs(settings.events);
  begin_runs(settings, numbers);
  if (is_file(settings)) {
    const auto opened = median_of(7, [&] {
      forget_pages(file_of(settings));
      const stopwatch watch;
      auto runtime = open_runtime(settings);
      runtime.sessions().get(keys[4'711], {.num_recent_events = 50}).value();
      return milliseconds(watch);
    });
    fmt::print("  open and get 50 of one session, out of the page cache: "
               "{:.1f} ms (file {} MB){}\n",
               opened,
               fs::file_size(file_of(settings)) / 1'000'000,
               circumstances(settings));
  }
  {
    auto runtime = open_runtime(settings);
    const session_key wide{"app", "user-1", "wide"};
    const session_key small{"app", "user-1", "small"};
    create_all(runtime, {wide, small});
    for (int part = 0; part < 100; ++part) {
      troupe::event said;
      said.author = "worker";
      for (int index = 0; index < 100; ++index)
        said.actions.state_delta
          .record(fmt::format("key-{}", part * 100 + index),
                  troupe::operation_kind::set,
                  troupe::json(index))
          .value();
      runtime.sessions().append_event(wide, std::move(said)).value();
    }
    const auto narrow
      = median_of(5, [&] { return append_cost(runtime, small, numbers); });
    const auto broad
      = median_of(5, [&] { return append_cost(runtime, wide, numbers); });
    fmt::print("  append to a session of 4 keys {:.0f} us, of 10,004 keys "
               "{:.0f} us{}\n",
               narrow,
               broad,
               circumstances(settings));
  }
  {
    // Each session is used only briefly: the limit of live sessions bounds the
    // memory.
    auto runtime = open_runtime(settings, 1'000);
    const auto before = resident_bytes();
    const auto many = make_keys(100'000);
    // In waves, so that few sessions are in use at the same time.
    constexpr std::ptrdiff_t wave = 500;
    for (auto next = many.begin() + 10'000; next != many.end(); next += wave)
      create_all(runtime, {next, next + wave});
    fmt::print("  100,000 sessions made, 1,000 of them live: {} MB more than "
               "with none{}\n",
               (resident_bytes() - std::min(before, resident_bytes()))
                 / 1'000'000,
               circumstances(settings));
  }
  start_anew(settings);
}

} // namespace bench
