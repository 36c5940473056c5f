// Runs all features for a long time over a SQLite file, and checks that memory,
// threads and file descriptors do not grow.
//
// Usage: soak [MINUTES [OPERATIONS_PER_SECOND]]; ends with 1 if they grow.

#include "troupe/core/support/scattered.hpp"
#include "troupe/models/scripted_model.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/open_store.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t workers = 4;
constexpr std::uint64_t sessions = 400;
constexpr std::uint64_t events_max = 300;

struct footprint {
  double resident = 0; // MiB.
  std::size_t threads = 0;
  std::size_t descriptors = 0;
};

std::size_t entries_of(const char* folder) {
  return static_cast<std::size_t>(
    std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

footprint look() {
  // Returns free memory to the system, so that it does not count as a leak.
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return {static_cast<double>(resident)
            * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024),
          entries_of("/proc/self/task"),
          entries_of("/proc/self/fd")};
}

agent pipeline() {
  const auto model = std::make_shared<scripted_model>(
    script_from_json(
      json::parse(R"({"writer": [{"function_calls": [{"name": "note",
                     "args": {"n": 1}}]}, "done"],
                     "*": ["fine"], "broken": [{"error": "no"}]})"))
      .value());
  const auto note
    = tool({.name = "note",
            .parameters = {{"type", "object"},
                           {"properties", {{"n", {{"type", "integer"}}}}}},
            .run = [](const json& args, tool_context& context) -> json {
              context.state().add("app:notes", args.at("n"));
              context.state().set("temp:noted", true);
              return 1;
            }});
  std::vector<agent> lanes;
  for (const auto* name : {"left", "middle", "right"})
    lanes.push_back(llm({.name = name,
                         .model = model,
                         .instruction = "Look at {topic?}.",
                         .output_key = fmt::format("by_{}", name)}));
  return sequential(
    "both",
    {llm(
       {.name = "writer", .model = model, .tools = {note}, .output_key = "x"}),
     parallel("lanes", std::move(lanes))});
}

// One of several threads that choose random operations.
class worker {
public:
  worker(runtime& owners, const agent& root, std::uint64_t seed)
    : owners_(owners),
      root_(root),
      seed_(seed) {}

  void act() {
    const auto which = draw(sessions);
    const session_key key{fmt::format("app{}", which % 3),
                          fmt::format("user{}", which % 20),
                          fmt::format("s{}", which)};
    switch (draw(100)) {
    default:
      return draw(20) == 0 ? repeat() : append(key);
    case 0:
      return run(key);
    case 1:
      keep(owners_.sessions().remove(key).get());
      return;
    case 2:
      keep(owners_.sessions().list({key.app, {}, 20}).get());
      return;
    case 3:
      keep(owners_.sessions().user_state(key.app, key.user).get());
      return;
    case 4:
      if (draw(100) == 0)
        keep(owners_.sessions().remove_user(key.app, key.user).get());
      return;
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
      keep(owners_.sessions().get(key, {.num_recent_events = draw(20)}).get());
    }
  }

  std::map<std::string, std::uint64_t> outcomes;
  /// The amounts that stored events added to `app:total`, by app.
  std::map<std::string, std::uint64_t> totals;
  std::uint64_t doubled = 0;

private:
  std::uint64_t draw(std::uint64_t limit) {
    return scattered(seed_ + ++drawn_) % limit;
  }

  template <class T>
  void keep(const result<T>& outcome) {
    ++outcomes[outcome ? std::string("ok")
                       : std::string(to_string(outcome.error().code()))];
  }

  void append(const session_key& key) {
    event said(text("word {}", drawn_));
    said.author = "soak";
    auto& changed = said.actions.state_delta;
    changed.record("count", operation_kind::add, json(1)).value();
    changed
      .record(fmt::format("k{}", draw(50)), operation_kind::set, json(drawn_))
      .value();
    if (draw(3) == 0)
      changed.record("user:total", operation_kind::add, json(1)).value();
    if (draw(5) == 0)
      changed.record("app:total", operation_kind::add, json(1)).value();
    if (draw(40) == 0) // This event is refused.
      changed.record("app:total", operation_kind::append, json(1)).value();
    // Some ids are used twice, with other content.
    said.id = fmt::format("{}-{}", seed_, drawn_ / (1 + draw(2)));
    auto outcome = owners_.sessions().append_event(key, said).get();
    keep(outcome);
    if (outcome) {
      count(key, **outcome);
      last_.emplace(key, std::move(said), *outcome);
    } else if (outcome.error().code() == errc::not_found)
      keep(owners_.sessions().create(key).get());
  }

  // A repeated event takes effect once. If its session was removed and created
  // again, it takes effect once more in the new one.
  void repeat() {
    if (!last_)
      return;
    const auto& [key, said, stored] = *last_;
    const auto outcome = owners_.sessions().append_event(key, said).get();
    if (!outcome)
      return keep(outcome);
    const bool is_same = **outcome == *stored;
    ++outcomes[is_same ? "retried" : "ok"];
    if (is_same)
      return;
    count(key, **outcome);
    // The session must not contain the event twice.
    if (const auto held = owners_.sessions().get(key).get())
      doubled += std::ranges::count(held->events(), said.id, &event::id) > 1;
  }

  void count(const session_key& key, const event& stored) {
    totals[key.app]
      += stored.actions.state_delta.find_last(scope::app, "total") != nullptr;
  }

  void run(const session_key& key) {
    const auto held
      = owners_.sessions().get(key, {.num_recent_events = 0}).get();
    if (!held)
      return keep(held);
    if (held->revision() > events_max)
      return keep(owners_.sessions().remove(key).get());
    auto under_way = owners_.run(root_, key, "Go!");
    if (draw(5) == 0)
      under_way.cancel();
    keep(under_way.wait().get());
  }

  runtime& owners_;
  const agent& root_;
  const std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
  std::optional<std::tuple<session_key, event, event_ptr>> last_;
};

template <class T>
T middle(std::vector<footprint>::const_iterator first,
         std::vector<footprint>::const_iterator last,
         T footprint::*field) {
  std::vector<T> values;
  std::transform(first,
                 last,
                 std::back_inserter(values),
                 [field](const footprint& each) { return each.*field; });
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Compares the third fifth of the time with the last one. In a test of an hour
// the caches are full after about twenty minutes.
bool is_flat(const std::vector<footprint>& seen) {
  const auto fifth = static_cast<std::ptrdiff_t>(seen.size() / 5);
  const auto early = seen.begin() + 2 * fifth;
  const auto late = seen.end() - fifth;
  const auto before = middle(early, early + fifth, &footprint::resident);
  const auto after = middle(late, seen.end(), &footprint::resident);
  const bool flat
    = after <= before * 1.05 + 4
      && middle(late, seen.end(), &footprint::threads)
           <= middle(early, early + fifth, &footprint::threads)
      && middle(late, seen.end(), &footprint::descriptors)
           <= middle(early, early + fifth, &footprint::descriptors) + 2;
  fmt::print("{}: {:.1f} MiB in the third fifth, {:.1f} MiB in the last\n",
             flat ? "flat" : "GROWING",
             before,
             after);
  return flat;
}

} // namespace

int main(int count, char** words) {
  const auto minutes = count > 1 ? std::atoi(words[1]) : 60;
  const auto rate = count > 2 ? std::atoi(words[2]) : 1'000;
  if (minutes < 1 || rate < 1 || count > 3) {
    std::fputs("usage: soak [MINUTES [OPERATIONS_PER_SECOND]]\n", stderr);
    return 2;
  }
  auto folder = (fs::temp_directory_path() / "troupe-soak-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    std::perror("soak: no folder for its store");
    return 1;
  }
  const auto file = folder + "/soak.db";
  std::vector<footprint> seen;
  std::map<std::string, std::uint64_t> outcomes;
  bool is_whole = true;
  {
    auto owners = runtime::open({.store = "sqlite:" + file,
                                 .durability = durability::os,
                                 .events_kept = 32,
                                 .live_sessions_max = 100,
                                 .session_idle_max = 2s})
                    .value();
    const auto root = pipeline();
    std::atomic<bool> stops = false;
    std::vector<worker> all;
    for (std::size_t index = 0; index < workers; ++index)
      all.emplace_back(owners, root, index * 1'000'003);
    std::vector<std::thread> threads;
    for (auto& each : all)
      threads.emplace_back([&each, &stops, rate] {
        // The rate is fixed: the duration is important, not the speed.
        auto due = clock::now();
        while (!stops) {
          each.act();
          due += std::chrono::nanoseconds(1'000'000'000)
                 * static_cast<int>(workers) / rate;
          std::this_thread::sleep_until(due); // The wanted rate.
        }
      });
    const auto start = clock::now();
    const std::chrono::seconds interval(minutes); // Sixty intervals in all.
    for (int index = 1; index <= 60; ++index) {
      std::this_thread::sleep_until(start + index * interval);
      seen.push_back(look());
      const auto& now = seen.back();
      fmt::print("{:>6.1f} min: {:>7.1f} MiB, {} threads, {} descriptors, "
                 "store {:.1f} MiB\n",
                 std::chrono::duration<double>(clock::now() - start).count()
                   / 60,
                 now.resident,
                 now.threads,
                 now.descriptors,
                 static_cast<double>(fs::file_size(file)) / (1024 * 1024));
      std::fflush(stdout);
    }
    stops = true;
    for (auto& thread : threads)
      thread.join();
    for (const auto& each : all)
      for (const auto& [code, times] : each.outcomes)
        outcomes[code] += times;
    std::map<std::string, std::uint64_t> totals;
    for (const auto& each : all) {
      is_whole = is_whole && each.doubled == 0;
      if (each.doubled > 0)
        fmt::print("DOUBLED: {} events\n", each.doubled);
      for (const auto& [app, total] : each.totals)
        totals[app] += total;
    }
    for (const auto& [app, total] : totals)
      if (const auto found = owners.sessions().app_state(app).value();
          found["total"] != json(total)) {
        fmt::print("LOST: {} counts {}, and {} were stored\n",
                   app,
                   found["total"].dump(),
                   total);
        is_whole = false;
      }
    owners.shut_down().value();
  }
  for (const auto& wrong :
       open_store("sqlite:" + file).value()->check({}).value()) {
    fmt::print("DAMAGED: {}\n", wrong);
    is_whole = false;
  }
  for (const auto& [code, times] : outcomes)
    fmt::print("{:>18}: {}\n", code, times);
  const auto flat = is_flat(seen);
  fs::remove_all(folder);
  const bool is_varied = outcomes["retried"] > 0 && outcomes["type_error"] > 0
                         && outcomes["cancelled"] > 0;
  return flat && is_whole && is_varied ? 0 : 1;
}
