#include "append_bench.hpp"

#include "troupe/contexts/task.hpp"
#include "troupe/runtime/runtime.hpp"

#include "mutex_sessions.hpp"
#include "sample_event.hpp"
#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <deque>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <thread>

namespace bench {

namespace {

using troupe::event_ptr;
using troupe::session_key;

// Events made in advance. Each is used once per round, since a session takes an
// event id once.
const std::vector<event_ptr>& ready_events() {
  static const auto pool = [] {
    std::vector<event_ptr> made;
    for (std::size_t number = 0; number < 600'000; ++number)
      made.push_back(
        std::make_shared<const troupe::event>(build_event(number)));
    return made;
  }();
  return pool;
}

// Gives the callers of one round their events, and stops them.
class supply {
public:
  supply(bool built, double seconds)
    : built_(built),
      end_(clock::now()
           + std::chrono::duration_cast<clock::duration>(
             std::chrono::duration<double>(seconds))) {}

  bool done(clock::time_point now) const {
    return now >= end_
           || (!built_
               && next_.load(std::memory_order_relaxed)
                    >= ready_events().size());
  }

  std::size_t claim() { return next_.fetch_add(1, std::memory_order_relaxed); }

  event_ptr make(std::size_t number) const {
    if (built_)
      return std::make_shared<const troupe::event>(build_event(number));
    return number < ready_events().size() ? ready_events()[number] : nullptr;
  }

private:
  const bool built_;
  const clock::time_point end_;
  std::atomic<std::size_t> next_{0};
};

std::uint32_t nanoseconds(clock::duration time) {
  return static_cast<std::uint32_t>(
    std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

struct shape {
  std::size_t callers;
  std::size_t sessions;
  bool built;
};

// One caller: a closed loop over random sessions. `Append` returns an awaitable
// of the outcome.
template <class Append>
troupe::task<> call_until_done(supply& events,
                               const std::vector<session_key>& keys,
                               std::size_t seed,
                               std::vector<std::uint32_t>& latencies,
                               Append append) {
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(seed + 1));
  for (auto now = clock::now(); !events.done(now);) {
    auto said = events.make(events.claim());
    if (!said)
      break;
    const auto& key = keys[random() % keys.size()];
    const auto before = clock::now();
    co_await append(key, std::move(said));
    now = clock::now();
    latencies.push_back(nanoseconds(now - before));
  }
}

round_result gather(double seconds,
                    double cpu,
                    std::vector<std::vector<std::uint32_t>> latencies) {
  round_result made{seconds, cpu, 0, {}};
  for (auto& each : latencies) {
    made.operations += each.size();
    made.latencies.insert(made.latencies.end(), each.begin(), each.end());
  }
  return made;
}

// -- troupe -------------------------------------------------------------------

troupe::runtime open_two_threads(const std::vector<session_key>& keys) {
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  std::latch created(static_cast<std::ptrdiff_t>(keys.size()));
  for (const auto& key : keys)
    runtime.sessions().create(key).then(
      [&created](troupe::result<troupe::session> made) {
        made.value();
        created.count_down();
      });
  created.wait();
  return runtime;
}

round_result troupe_tasks(const shape& shape, double seconds) {
  const auto keys = make_keys(shape.sessions);
  auto runtime = open_two_threads(keys);
  std::vector<std::vector<std::uint32_t>> latencies(shape.callers);
  std::latch ended(static_cast<std::ptrdiff_t>(shape.callers));
  supply events(shape.built, seconds);
  const stopwatch watch;
  auto append
    = [&runtime](const session_key& key, event_ptr said) -> troupe::task<> {
    const auto stored
      = co_await runtime.sessions().append_event(key, std::move(said));
    stored.value();
  };
  for (std::size_t index = 0; index < shape.callers; ++index)
    troupe::start(
      call_until_done(events, keys, index, latencies[index], append),
      [&ended](std::exception_ptr failure) {
        if (failure)
          std::terminate();
        ended.count_down();
      });
  ended.wait();
  return gather(watch.seconds(), watch.cpu_seconds(), std::move(latencies));
}

// -- the mutex ----------------------------------------------------------------

// Round robin over the tasks of one thread: after each append the next task
// runs.
class task_thread {
public:
  struct yield {
    task_thread& thread;

    bool await_ready() const noexcept { return false; }

    void await_suspend(std::coroutine_handle<> waiting) const {
      thread.ready_.push_back(waiting);
    }

    void await_resume() const noexcept {}
  };

  void run() {
    while (!ready_.empty()) {
      const auto next = ready_.front();
      ready_.pop_front();
      next.resume();
    }
  }

private:
  std::deque<std::coroutine_handle<>> ready_;
};

round_result mutex_tasks(const shape& shape, double seconds) {
  const auto keys = make_keys(shape.sessions);
  mutex_sessions sessions;
  for (const auto& key : keys)
    sessions.create(key);
  std::vector<std::vector<std::uint32_t>> latencies(shape.callers);
  supply events(shape.built, seconds);
  const stopwatch watch;
  const auto serve = [&](std::size_t first) {
    task_thread thread;
    auto append
      = [&](const session_key& key, event_ptr said) -> troupe::task<> {
      if (!sessions.append(key, std::move(said)))
        std::terminate();
      co_await task_thread::yield{thread};
    };
    for (auto index = first; index < shape.callers; index += 2)
      troupe::start(
        call_until_done(events, keys, index, latencies[index], append),
        [](std::exception_ptr failure) {
          if (failure)
            std::terminate();
        });
    thread.run();
  };
  std::thread other(serve, 1);
  serve(0);
  other.join();
  return gather(watch.seconds(), watch.cpu_seconds(), std::move(latencies));
}

// -- threads ------------------------------------------------------------------

template <class Append>
round_result by_threads(const shape& shape, double seconds, Append append) {
  const auto keys = make_keys(shape.sessions);
  std::vector<std::vector<std::uint32_t>> latencies(shape.callers);
  supply events(shape.built, seconds);
  const stopwatch watch;
  std::vector<std::thread> callers;
  for (std::size_t index = 0; index < shape.callers; ++index)
    callers.emplace_back([&, index] {
      std::minstd_rand random(
        static_cast<std::minstd_rand::result_type>(index + 1));
      for (auto now = clock::now(); !events.done(now);) {
        auto said = events.make(events.claim());
        if (!said)
          break;
        const auto& key = keys[random() % keys.size()];
        const auto before = clock::now();
        append(key, std::move(said));
        now = clock::now();
        latencies[index].push_back(nanoseconds(now - before));
      }
    });
  for (auto& caller : callers)
    caller.join();
  return gather(watch.seconds(), watch.cpu_seconds(), std::move(latencies));
}

round_result troupe_threads(const shape& shape, double seconds) {
  auto runtime = open_two_threads(make_keys(shape.sessions));
  return by_threads(
    shape, seconds, [&runtime](const session_key& key, event_ptr said) {
      runtime.sessions().append_event(key, std::move(said)).value();
    });
}

round_result mutex_threads(const shape& shape, double seconds) {
  mutex_sessions sessions;
  for (const auto& key : make_keys(shape.sessions))
    sessions.create(key);
  return by_threads(
    shape, seconds, [&sessions](const session_key& key, event_ptr said) {
      if (!sessions.append(key, std::move(said)))
        std::terminate();
    });
}

// -- printing -----------------------------------------------------------------

void print_head(const char* title) {
  fmt::print("\n{}\n{:>7} {:>8} {:>6} {:>7} {:>10} {:>17} {:>9} {:>9} {:>10} "
             "{:>8} {:>6}\n",
             title,
             "callers",
             "sessions",
             "events",
             "side",
             "appends/s",
             "(min..max)",
             "p50 us",
             "p99 us",
             "p99.9 us",
             "CPU us",
             "ratio");
}

void print_row(const shape& shape,
               const char* side,
               const summary& made,
               double ratio) {
  fmt::print("{:>7} {:>8} {:>6} {:>7} {:>10.0f} {:>17} {:>9.1f} {:>9.1f} "
             "{:>10.1f} {:>8.2f} {:>6}\n",
             shape.callers,
             shape.sessions,
             shape.built ? "built" : "ready",
             side,
             made.rate,
             fmt::format("({:.0f}k..{:.0f}k)",
                         made.rate_min / 1000,
                         made.rate_max / 1000),
             made.p50,
             made.p99,
             made.p999,
             made.cpu,
             ratio > 0 ? fmt::format("{:.2f}", ratio) : "");
  std::fflush(stdout);
}

template <class First, class Second>
void compare(const append_settings& settings,
             const shape& shape,
             First first,
             Second second) {
  if ((settings.callers != 0 && settings.callers != shape.callers)
      || (settings.sessions != 0 && settings.sessions != shape.sessions))
    return;
  if (!shape.built)
    ready_events(); // Made before the first round.
  const auto made
    = alternate(settings.rounds,
                {[&] { return first(shape, settings.seconds); },
                 [&] { return second(shape, settings.seconds); }});
  print_row(shape, "troupe", made[0], made[0].rate / made[1].rate);
  print_row(shape, "mutex", made[1], 0);
}

constexpr std::size_t caller_counts[] = {1, 8, 64, 512};
constexpr std::size_t session_counts[] = {1, 64, 10'000};

} // namespace

void append_by_tasks(const append_settings& settings) {
  print_head(
    "append: callers are tasks on two threads; ratio = troupe / mutex");
  for (const bool built : {true, false})
    for (const auto sessions : session_counts)
      for (const auto callers : caller_counts)
        compare(
          settings, {callers, sessions, built}, troupe_tasks, mutex_tasks);
}

void append_by_threads(const append_settings& settings) {
  print_head("append: callers are threads, blocking; ratio = troupe / mutex");
  for (const auto sessions : session_counts)
    for (const auto callers : caller_counts)
      compare(
        settings, {callers, sessions, true}, troupe_threads, mutex_threads);
}

// -- growth -------------------------------------------------------------------

namespace {

constexpr std::size_t growth_appends = 20'000;

// Keeps 64 appends under way on one session until `left` are made; with `read`,
// takes a snapshot after each.
troupe::task<> append_some(troupe::session_service& sessions,
                           const session_key& key,
                           std::atomic<std::size_t>& left,
                           const std::vector<event_ptr>& events,
                           bool read) {
  for (;;) {
    const auto claimed = left.fetch_sub(1, std::memory_order_relaxed);
    if (claimed == 0 || claimed > events.size())
      co_return;
    auto stored = co_await sessions.append_event(key, events[claimed - 1]);
    stored.value();
    if (!read)
      continue;
    auto fetched = co_await sessions.get(key, {.num_recent_events = 0});
    fetched.value();
  }
}

std::vector<event_ptr> some_events(std::size_t from, std::size_t count) {
  std::vector<event_ptr> made;
  for (std::size_t index = 0; index < count; ++index)
    made.push_back(
      std::make_shared<const troupe::event>(build_event(from + index)));
  return made;
}

void append_all(troupe::runtime& runtime,
                const session_key& key,
                const std::vector<event_ptr>& events,
                bool read) {
  constexpr std::size_t callers = 64;
  std::atomic<std::size_t> left{events.size()};
  std::latch ended(callers);
  for (std::size_t index = 0; index < callers; ++index)
    troupe::start(append_some(runtime.sessions(), key, left, events, read),
                  [&ended](std::exception_ptr failure) {
                    if (failure)
                      std::terminate();
                    ended.count_down();
                  });
  ended.wait();
}

double cost_after(std::size_t history) {
  const session_key key{"app", "user", "session"};
  auto runtime = open_two_threads({key});
  for (std::size_t done = 0; done < history;) {
    const auto count = std::min<std::size_t>(history - done, 50'000);
    append_all(runtime, key, some_events(done, count), false);
    done += count;
  }
  const auto events = some_events(history, growth_appends);
  const stopwatch watch;
  append_all(runtime, key, events, false);
  return watch.cpu_seconds() * 1e6 / growth_appends;
}

double cost_with_keys(std::size_t count) {
  const session_key key{"app", "user", "session"};
  auto runtime = troupe::runtime::open({.threads = 2}).value();
  auto state = troupe::json::object();
  for (std::size_t index = 0; index < count; ++index)
    state[fmt::format("key-{}", index)] = index;
  runtime.sessions().create(key, state).value();
  const auto events = some_events(0, growth_appends);
  const stopwatch watch;
  append_all(runtime, key, events, true);
  return watch.cpu_seconds() * 1e6 / growth_appends;
}

template <class Cost>
void print_growth(const append_settings& settings,
                  const char* what,
                  const std::vector<std::size_t>& sizes,
                  Cost cost) {
  std::vector<std::vector<double>> costs(sizes.size());
  for (std::size_t round = 0; round < settings.rounds; ++round)
    for (std::size_t index = 0; index < sizes.size(); ++index)
      costs[index].push_back(cost(sizes[index]));
  const auto base = median(costs.front());
  for (std::size_t index = 0; index < sizes.size(); ++index)
    fmt::print("{:>9} {:<28} {:>8.2f} us CPU per append, {:.2f} of the first\n",
               sizes[index],
               what,
               median(costs[index]),
               median(costs[index]) / base);
  std::fflush(stdout);
}

} // namespace

void append_as_it_grows(const append_settings& settings) {
  fmt::print("\nappend: cost by what is already there (ready-made events, 64 "
             "under way on one session)\n");
  append_settings few;
  few.rounds = std::min<std::size_t>(settings.rounds, 3);
  print_growth(few, "earlier events", {10, 10'000, 1'000'000}, cost_after);
  print_growth(
    settings, "keys, a snapshot after each", {10, 10'000}, cost_with_keys);
}

} // namespace bench
