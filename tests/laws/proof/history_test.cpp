// Real histories of many threads pass the checkers. A history that was changed
// in one place fails.

#include "history.hpp"

#include "troupe/runtime/runtime.hpp"

#include "../../random.hpp"
#include "../../runtime/staged_store.hpp"
#include "../../stores/temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(real_histories, *boost::unit_test::timeout(300))

namespace {

history record(runtime_options options, std::uint64_t seed, std::size_t count) {
  BOOST_TEST_MESSAGE("workload seed " << seed);
  auto on = runtime::open(std::move(options)).value();
  return record_history(
    {&on.sessions()}, "press", {.seed = seed, .operations = count});
}

// Several threads create, remove, append to and get two sessions. The history
// of each session is checked by itself. Calls of one thread never overlap.
std::string lifetimes(runtime_options options, std::uint64_t seed) {
  using enum lifetime_spec::kind;
  using call = timed_call<lifetime_spec::operation>;
  constexpr std::size_t threads = 5;
  auto on = runtime::open(std::move(options)).value();
  auto& sessions = on.sessions();
  std::atomic<std::uint64_t> clock{0};
  std::vector<std::array<std::vector<call>, 2>> told(threads);
  std::vector<random_source> random;
  for (std::size_t index = 0; index < threads; ++index)
    random.emplace_back(seed * threads + index);
  std::vector<std::thread> all;
  for (std::size_t index = 0; index < threads; ++index)
    all.emplace_back([&, index] {
      for (std::size_t count = 0; count < 600; ++count) {
        const auto which = random[index].below(2);
        const session_key key{"press", "ann", which == 0 ? "a" : "b"};
        call made{{}, ++clock, 0, index};
        made.what.what = random[index].pick(
          std::array{create, remove, append, append, append, get, get});
        switch (made.what.what) {
        case create:
          made.what.done = sessions.create(key).get().has_value();
          break;
        case remove:
          made.what.done = sessions.remove(key).value();
          break;
        case append: {
          event said;
          said.author = "user";
          if (random[index].one_in(2))
            said.actions.state_delta
              .record("app:n", operation_kind::add, json(1))
              .value();
          made.what.done = sessions.append_event(key, said).get().has_value();
          break;
        }
        case get: {
          const auto found = sessions.get(key, {.num_recent_events = 1}).get();
          made.what.done = found.has_value();
          made.what.seen = found ? found->revision() : 0;
          break;
        }
        }
        made.answered = ++clock;
        told[index][which].push_back(made);
      }
    });
  for (auto& each : all)
    each.join();
  std::string findings;
  for (std::size_t which = 0; which < 2; ++which) {
    std::vector<call> calls;
    for (const auto& own : told)
      calls.insert(calls.end(), own[which].begin(), own[which].end());
    findings
      += check_linearizability<lifetime_spec>(which == 0 ? "a" : "b", calls)
           .finding;
  }
  return findings;
}

// Returns the longest of the reads at the end, which see everything.
list_transaction::read& longest_read(history& told) {
  return *std::ranges::max_element(
    told.lists.back().reads, {}, [](const auto& each) {
      return each.list.size();
    });
}

std::string findings(const history& told) {
  return to_string(judge(told, time_order::channel));
}

bool says(const std::string& finding, const std::string& words) {
  BOOST_TEST_INFO(finding);
  return finding.find(words) != std::string::npos;
}

} // namespace

BOOST_DATA_TEST_CASE(what_threads_were_told_in_memory_holds,
                     data::xrange(1U, 4U),
                     seed) {
  runtime_options options;
  if (seed == 2)
    options.live_sessions_max = 2; // Sessions become idle during the test.
  const auto told = record(std::move(options), seed, 15'000);
  BOOST_TEST(findings(told) == "");
  // The history has enough calls, and refusals among them.
  BOOST_TEST(told.operations >= 15'000U);
  for (const auto* code : {"ok", "conflict", "type_error"})
    BOOST_TEST(told.answers.contains(code), code);
}

BOOST_AUTO_TEST_CASE(what_threads_were_told_over_sqlite_holds) {
  const temporary_folder folder;
  runtime_options options;
  options.store = "sqlite:" + (folder.path() / "history.db").string();
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.durability = durability::os;
  // Sessions leave memory during the test.
  options.live_sessions_max = 3;
  BOOST_TEST(findings(record(std::move(options), 4, 6'000)) == "");
}

BOOST_DATA_TEST_CASE(what_threads_of_two_runtimes_on_one_file_were_told_holds,
                     data::xrange(1U, 4U),
                     seed) {
  const temporary_folder folder;
  runtime_options options;
  options.store = "sqlite:" + (folder.path() / "shared.db").string();
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.durability = durability::none;
  options.live_sessions_max = 5;
  auto one = runtime::open(options).value();
  auto other = runtime::open(options).value();
  const auto told = record_history({&one.sessions(), &other.sessions()},
                                   "press",
                                   {.seed = seed, .operations = 3'000});
  BOOST_TEST(findings(told) == "");
}

// A failed commit removes no state that was read before, and none of its state
// is read later.
BOOST_DATA_TEST_CASE(what_threads_over_a_failing_store_were_told_holds,
                     data::xrange(1U, 7U),
                     seed) {
  const staged_place place;
  random_source random(seed);
  std::size_t commits = 0;
  place.script->each_commit([&]() -> store_script::step {
    // The first commits create the sessions and must work.
    if (++commits < 50 || !random.one_in(20))
      return store_script::step::work;
    return random.one_in(2) ? store_script::step::fail
                            : store_script::step::fail_anyway;
  });
  history told;
  {
    auto on = runtime::open(place.options()).value();
    told = record_history(
      {&on.sessions()},
      "press",
      {.seed = seed, .operations = 8'000, .store_fails = true});
  }
  BOOST_TEST(findings(told) == "");
  BOOST_TEST(told.answers["store_failed"] > 10U);
  BOOST_TEST(place.damage().empty());
}

BOOST_DATA_TEST_CASE(sessions_that_come_and_go_are_linearizable,
                     data::xrange(1U, 4U),
                     seed) {
  BOOST_TEST(lifetimes({}, seed) == "");
  runtime_options crowded;
  crowded.live_sessions_max = 1;
  BOOST_TEST(lifetimes(std::move(crowded), seed) == "");
  const temporary_folder folder;
  runtime_options options;
  options.store = "sqlite:" + (folder.path() / "lifetimes.db").string();
  options.append_wait_max = {}; // A slow machine refuses nothing.
  options.durability = durability::none;
  options.live_sessions_max = 1;
  BOOST_TEST(lifetimes(std::move(options), seed) == "");
}

BOOST_AUTO_TEST_CASE(what_was_tampered_with_is_found) {
  const auto real = record({}, 5, 4'000);
  BOOST_REQUIRE(findings(real) == "");
  {
    auto told = real;
    // Removes the newest token from every read.
    auto& newest = longest_read(told);
    const auto lost = newest.list.back();
    for (auto& call : told.lists)
      for (auto& each : call.reads)
        std::erase(each.list, lost);
    BOOST_TEST(says(findings(told), "lost: "));
  }
  {
    auto told = real;
    auto& list = longest_read(told).list;
    std::swap(list[list.size() / 2], list[list.size() / 2 + 1]);
    BOOST_TEST(says(findings(told), "incompatible orders: "));
  }
  {
    auto told = real;
    auto& list = longest_read(told).list;
    list.push_back(list.front());
    BOOST_TEST(says(findings(told), "duplicate: "));
  }
  {
    auto told = real;
    longest_read(told).list.push_back(4'000'000'000);
    BOOST_TEST(says(findings(told), "ghost: "));
  }
  {
    auto told = real;
    // The missing token may come from another session, so this needs the order
    // by time of all calls.
    longest_read(told).list.pop_back();
    // Which cycle is the shortest depends on the threads.
    const auto found = to_string(judge(told, time_order::all));
    BOOST_TEST((says(found, "G-single with time: ") || says(found, "G2: ")),
               found);
  }
  {
    auto told = real;
    // The append is recorded as refused although its token was read.
    const auto seen = longest_read(told).list.back();
    for (auto& call : told.lists)
      for (const auto& each : call.appends)
        if (each.what == seen)
          call.came_to = testing::fate::refused;
    BOOST_TEST(says(findings(told), "aborted read (G1a): "));
  }
  {
    auto told = real;
    ++told.accounts[0].reads.back().accounts.begin()->second;
    BOOST_TEST(says(findings(told), "half of an event: "));
  }
  {
    auto told = real;
    // The last read of a register sees a value that was never written.
    auto& calls = told.registers.begin()->second;
    const auto last = std::ranges::max_element(
      calls, {}, [](const auto& each) { return each.asked; });
    last->what.seen = last->what.seen.value_or(0) + 1'000'000;
    BOOST_TEST(says(findings(told), "not linearizable: key 'press app:r0'"));
  }
}

BOOST_AUTO_TEST_SUITE_END()
