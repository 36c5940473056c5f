// Sends ten times the capacity of the store for a minute. Appends beyond the
// limits are refused, memory stays bounded, accepted appends do not wait long,
// and afterwards the runtime is as fast as before.

#include "troupe/core/support/scattered.hpp"
#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/sqlite/open.hpp"

#include "../../forwarding_store.hpp"
#include "../../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(overload)

namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t appends_max = 2'000;
constexpr std::size_t sessions = 64;

// A store that takes 0.1 ms per change: at most 10,000 changes a second.
class slow_store : public forwarding_store {
public:
  explicit slow_store(const std::filesystem::path& file)
    : forwarding_store(open_sqlite_store(file, {durability::none}).value()) {}

  // Sleeps: a store whose answers take time is what is tried here.
  result<commit_outcome>
  commit(std::span<const store_change> changes) override {
    std::this_thread::sleep_for(100us * changes.size());
    return forwarding_store::commit(changes);
  }
};

double resident_mebibytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident)
         * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

session_key key_of(std::uint64_t number) {
  return {"app", "user", fmt::format("s{}", number % sessions)};
}

event counting() {
  event said(text("one more"));
  said.author = "writer";
  said.actions.state_delta.record("app:n", operation_kind::add, json(1))
    .value();
  return said;
}

std::int64_t milliseconds(clock::duration time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
}

// A runtime over a slow store, and counts of its answers.
class flooded_runtime {
public:
  flooded_runtime(const std::filesystem::path& file, std::size_t limit)
    : owners(runtime::open({.store = std::make_shared<slow_store>(file),
                            .runtime_appends_max = limit,
                            .events_kept = 16})
               .value()) {
    for (std::uint64_t number = 0; number < sessions; ++number)
      owners.sessions().create({"app", "user", key_of(number).id}).value();
  }

  void append(std::uint64_t number) {
    ++under_way;
    owners.sessions()
      .append_event(key_of(number), counting())
      .then([this, begun = clock::now()](const result<event_ptr>& answer) {
        if (answer)
          note_wait(clock::now() - begun);
        ++(answer                                ? stored
           : answer.error().code() == errc::busy ? busy
                                                 : other);
        --under_way;
      });
  }

  // Sends 100,000 appends a second, in portions of one millisecond.
  void send_for(clock::duration time) {
    const auto start = clock::now();
    // Sleeps to keep the rate, and waits for no result.
    for (auto due = start; due < start + time; due += 1ms) {
      std::this_thread::sleep_until(due);
      for (int count = 0; count < 100; ++count)
        append(scattered(sent++));
      most = std::max<std::uint64_t>(most, under_way);
      if (sent % 100'000 == 0)
        resident.push_back(resident_mebibytes());
    }
    took = clock::now() - start;
    kept_pace = took < time + time / 6;
  }

  void drain() const {
    while (under_way > 0)
      std::this_thread::yield();
  }

  // The time within which 99 of 100 accepted appends were answered.
  clock::duration long_wait() const {
    std::uint64_t shorter = 0;
    std::size_t slot = 0;
    for (; slot + 1 < waits_.size(); ++slot)
      if ((shorter += waits_[slot]) * 100 >= stored * 99)
        break;
    return (slot + 1) * wait_step;
  }

  runtime owners;
  std::uint64_t sent = 0;
  std::uint64_t most = 0;
  clock::duration took{};
  bool kept_pace = false;
  std::vector<double> resident{resident_mebibytes()};
  std::atomic<std::uint64_t> stored = 0;
  std::atomic<std::uint64_t> busy = 0;
  std::atomic<std::uint64_t> other = 0;
  std::atomic<std::uint64_t> under_way = 0;

private:
  static constexpr clock::duration wait_step = 10ms;

  void note_wait(clock::duration wait) {
    ++waits_[std::min<std::size_t>(static_cast<std::size_t>(wait / wait_step),
                                   waits_.size() - 1)];
  }

  std::array<std::atomic<std::uint64_t>, 3'000> waits_{};
};

} // namespace

BOOST_AUTO_TEST_CASE(ten_times_too_much_is_answered_and_forgotten) {
  const testing::temporary_folder folder;
  flooded_runtime on(folder.path() / "store.db", appends_max);
  on.send_for(60s);
  const auto end = clock::now();
  // Waits for the answers to all accepted appends, then appends once more.
  on.drain();
  const auto drained = clock::now() - end;
  on.owners.sessions().append_event(key_of(0), counting()).value();
  const auto answered = clock::now() - end;
  ++on.stored;
  // Sends as many appends as may be under way, without overload.
  const auto calm = clock::now();
  for (std::size_t count = 0; count < appends_max; ++count)
    on.append(scattered(count));
  on.drain();
  const auto in_peace = clock::now() - calm;
  const auto& resident = on.resident;
  const auto highest = std::ranges::max(resident);
  const auto thirds = std::ssize(resident) / 3;
  BOOST_TEST_MESSAGE(fmt::format(
    "{} sent, {} stored, {} busy; at most {} under way; {:.0f} MiB more at the "
    "height; all answered after {} ms, the next one after {} ms; as many in "
    "peace take {} ms",
    on.sent,
    on.stored.load(),
    on.busy.load(),
    on.most,
    highest - resident.front(),
    milliseconds(drained),
    milliseconds(answered),
    milliseconds(in_peace)));
  BOOST_TEST(on.other == 0U);
  BOOST_TEST(on.stored + on.busy == on.sent + 1 + appends_max);
  // Skipped if the machine cannot send that many.
  if (on.kept_pace)
    BOOST_TEST(on.busy > 7 * on.stored);
  BOOST_TEST(on.stored > 10 * appends_max);
  BOOST_TEST(on.owners.sessions().app_state("app").value()["n"]
             == on.stored.load());
  // Accepted appends are bounded; refusals are under way for a short time.
  BOOST_TEST(on.most < 4 * appends_max);
  BOOST_TEST(highest - resident.front() < 200);
  BOOST_TEST(
    *std::max_element(resident.end() - thirds, resident.end())
    < *std::max_element(resident.end() - 2 * thirds, resident.end() - thirds)
        + 16);
  // The backlog takes about a fifth of a second; then appends are fast again.
  BOOST_TEST(milliseconds(answered) < 5 * milliseconds(in_peace));
}

// Only the limit of the expected wait takes effect here.
BOOST_AUTO_TEST_CASE(what_is_accepted_does_not_wait_for_long) {
  const testing::temporary_folder folder;
  flooded_runtime on(folder.path() / "store.db",
                     runtime_options().runtime_appends_max);
  on.send_for(30s);
  on.drain();
  const auto rate = static_cast<double>(on.stored)
                    / std::chrono::duration<double>(on.took).count();
  BOOST_TEST_MESSAGE(fmt::format("{} sent, {} stored ({:.0f} a second), {} "
                                 "busy; at most {} under way; 99 of "
                                 "100 within {} ms",
                                 on.sent,
                                 on.stored.load(),
                                 rate,
                                 on.busy.load(),
                                 on.most,
                                 milliseconds(on.long_wait())));
  BOOST_TEST(on.other == 0U);
  BOOST_TEST(on.stored + on.busy == on.sent);
  // Without the limit these would wait for half a minute and more.
  BOOST_TEST(milliseconds(on.long_wait()) < 2'000);
  BOOST_TEST(static_cast<double>(on.most) < 4 * rate);
  // The waits are not short because few appends were sent.
  if (on.kept_pace)
    BOOST_TEST(milliseconds(on.long_wait()) > 200);
  BOOST_TEST(on.owners.sessions().app_state("app").value()["n"]
             == on.stored.load());
}

BOOST_AUTO_TEST_SUITE_END()
