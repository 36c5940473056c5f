#include "follow_bench.hpp"

#include "troupe/runtime/runtime.hpp"

#include "sample_event.hpp"
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

namespace {

constexpr std::size_t sessions = 50;
constexpr std::size_t readers_per_session = 100;
constexpr std::size_t rate = 5'000; // Appends per second.

enum class place { memory, sqlite, other_runtime };

// When each append was sent. Appends are numbered; the number is the event's
// id.
using sent_times = std::vector<clock::time_point>;

std::uint32_t nanoseconds_since(clock::time_point start) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(
    UINT32_MAX,
    std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - start)
      .count()));
}

// Reads a session by completions, and records how late each event comes.
class reader {
public:
  reader(troupe::runtime& on,
         const troupe::session_key& key,
         const sent_times& sent)
    : sent_(sent),
      from_(on.sessions().follow(key, {.from = 0})) {}

  void read() {
    from_.next().then([this](const troupe::result<troupe::event_ptr>& next) {
      if (!next || !*next)
        return;
      const auto& id = (*next)->id;
      std::size_t number = 0;
      const auto end
        = std::from_chars(id.data(), id.data() + id.size(), number);
      if (end.ec == std::errc() && end.ptr == id.data() + id.size())
        lags.push_back(nanoseconds_since(sent_[number]));
      count.fetch_add(1, std::memory_order_release);
      read();
    });
  }

  // Waits until that many events were delivered.
  void await(std::size_t wanted) const {
    while (count.load(std::memory_order_acquire) < wanted)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  std::vector<std::uint32_t> lags;
  std::atomic<std::size_t> count{0};

private:
  const sent_times& sent_;
  troupe::follower from_;
};

struct outcome {
  round_result appends;
  std::vector<std::uint32_t> lags;
};

// Sends appends at the fixed rate, in portions of a millisecond.
round_result append_at_rate(troupe::runtime& on,
                            const std::vector<troupe::session_key>& keys,
                            sent_times& sent) {
  std::vector<std::uint32_t> latencies(sent.size());
  std::latch answered(static_cast<std::ptrdiff_t>(sent.size()));
  const stopwatch watch;
  for (std::size_t number = 0; number < sent.size(); ++number) {
    const auto due = static_cast<double>(number) / rate;
    while (watch.seconds() < due)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    auto said = build_event(number);
    said.id = std::to_string(number);
    sent[number] = clock::now();
    on.sessions()
      .append_event(keys[number % keys.size()], std::move(said))
      .then([&, number](const troupe::result<troupe::event_ptr>& stored) {
        if (!stored) {
          fmt::print(
            stderr, "an append failed: {}\n", stored.error().message());
          std::terminate();
        }
        latencies[number] = nanoseconds_since(sent[number]);
        answered.count_down();
      });
  }
  answered.wait();
  return {
    watch.seconds(), watch.cpu_seconds(), sent.size(), std::move(latencies)};
}

outcome follow_round(place where, std::size_t readers_each, double seconds) {
  const auto file = std::filesystem::temp_directory_path() / "follow_bench.db";
  for (const auto* const end : {"", "-wal", "-shm"})
    std::filesystem::remove(file.string() + end);
  troupe::runtime_options options;
  options.threads = 2;
  if (where != place::memory)
    options.store = "sqlite:" + file.string();
  auto on = troupe::runtime::open(options).value();
  const auto keys = make_keys(sessions);
  for (const auto& key : keys)
    on.sessions().create(key).value();
  std::unique_ptr<troupe::runtime> other;
  if (where == place::other_runtime)
    other = std::make_unique<troupe::runtime>(
      troupe::runtime::open(options).value());
  sent_times sent(static_cast<std::size_t>(seconds * rate));
  std::vector<std::unique_ptr<reader>> readers;
  for (const auto& key : keys)
    for (std::size_t count = 0; count < readers_each; ++count) {
      readers.push_back(
        std::make_unique<reader>(other ? *other : on, key, sent));
      readers.back()->read();
    }
  // After this event, which is not measured, every reader waits for the next.
  for (const auto& key : keys) {
    auto first = build_event(0);
    first.id = "first";
    on.sessions().append_event(key, std::move(first)).value();
  }
  for (const auto& each : readers)
    each->await(1);
  outcome made;
  made.appends = append_at_rate(on, keys, sent);
  for (const auto& each : readers)
    each->await(1 + sent.size() / keys.size());
  static_cast<void>(on.shut_down());
  if (other)
    static_cast<void>(other->shut_down());
  for (const auto& each : readers)
    made.lags.insert(made.lags.end(), each->lags.begin(), each->lags.end());
  return made;
}

void print_lags(std::vector<std::uint32_t> lags) {
  std::ranges::sort(lags);
  const auto at = [&lags](double share) {
    return lags[static_cast<std::size_t>(
             share * static_cast<double>(lags.size() - 1))]
           / 1e6;
  };
  fmt::print("    {} deliveries, behind the call of the append: p50 {:.2f} ms, "
             "p99 {:.2f} ms, all {:.2f} ms\n",
             lags.size(),
             at(0.5),
             at(0.99),
             at(1));
}

void compare(const char* name, place where, const follow_settings& settings) {
  std::vector<std::uint32_t> lags;
  const auto side = [&](std::size_t readers) {
    return [&, readers] {
      auto made = follow_round(where, readers, settings.seconds);
      lags.insert(lags.end(), made.lags.begin(), made.lags.end());
      return std::move(made.appends);
    };
  };
  const auto made
    = alternate(settings.rounds, {side(0), side(readers_per_session)});
  fmt::print("{}, {} sessions, {:.0f} appends per second:\n",
             name,
             sessions,
             made[1].rate);
  for (std::size_t index = 0; index < 2; ++index)
    fmt::print("    {:>3} followers each: p50 {:.1f} us, p99 {:.1f} us, {:.1f} "
               "us CPU per append\n",
               index * readers_per_session,
               made[index].p50,
               made[index].p99,
               made[index].cpu);
  print_lags(std::move(lags));
}

} // namespace

void follow_sessions(const follow_settings& settings) {
  fmt::print("\nfollowed sessions\n");
  compare("in memory", place::memory, settings);
  compare("over SQLite", place::sqlite, settings);
  compare(
    "over SQLite, followed by another runtime", place::other_runtime, settings);
}

} // namespace bench
