// Readers that follow a session: every event once, in order, without a gap
// between stored and new ones.

#include "../stores/sqlite_copy.hpp"
#include "../stores/temporary_folder.hpp"
#include "agent_fixture.hpp"
#include "counting.hpp"
#include "locations.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(follow, *boost::unit_test::timeout(120))

namespace {

void say(runtime_fixture& on, int first, int last) {
  for (int number = first; number <= last; ++number)
    BOOST_TEST_REQUIRE(
      on.append(here, change({{"n", number}}, "e" + std::to_string(number)))
      == "ok");
}

// Waits for the next answer, at most as long as a test is patient.
result<event_ptr> next_of(follower& of) {
  answers<event_ptr> taken;
  of.next().then(taken.next());
  return taken.await()[0];
}

std::string code_of_next(follower& of) {
  const auto next = next_of(of);
  return next && !*next ? "end" : code_of(next);
}

// Takes events `first` to `last`.
void take(follower& of, int first, int last) {
  for (int number = first; number <= last; ++number) {
    const auto next = next_of(of);
    BOOST_TEST_REQUIRE(code_of(next) == "ok");
    BOOST_TEST_REQUIRE(*next);
    BOOST_TEST_REQUIRE((*next)->id == "e" + std::to_string(number));
  }
}

// Waits until the follower has its place in the session.
void await_place(const follower& of) {
  while (!of.revision())
    std::this_thread::yield();
}

bool is_quiet(follower& of) {
  answers<event_ptr> taken;
  of.next().then(taken.next());
  return !taken.any_within(20ms);
}

} // namespace

BOOST_DATA_TEST_CASE(stored_and_new_events_come_once_and_in_order,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  say(on, 1, 5);
  auto all = on.sessions().follow(here, {.from = 0});
  auto some = on.sessions().follow(here, {.from = 3});
  auto news = on.sessions().follow(here);
  say(on, 6, 10);
  take(all, 1, 10);
  take(some, 4, 10);
  take(news, 6, 10);
  BOOST_TEST((all.revision() == 10U));
  say(on, 11, 11);
  take(all, 11, 11);
  take(some, 11, 11);
}

BOOST_DATA_TEST_CASE(events_that_left_memory_are_read_from_the_store,
                     data::make(shared_kinds),
                     kind) {
  location_of at(kind);
  auto options = at.options();
  options.events_kept = 4;
  runtime_fixture on(std::move(options));
  on.open();
  say(on, 1, 700);
  auto all = on.sessions().follow(here, {.from = 0});
  auto some = on.sessions().follow(here, {.from = 321});
  take(all, 1, 700);
  say(on, 701, 702);
  take(all, 701, 702);
  take(some, 322, 702);
}

BOOST_DATA_TEST_CASE(events_of_others_come_although_nobody_calls,
                     data::make(shared_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture one(at.options());
  runtime_fixture other(at.options());
  one.open();
  say(one, 1, 2);
  auto news = one.sessions().follow(here);
  auto all = one.sessions().follow(here, {.from = 0});
  await_place(news); // Only this runtime's own events come after the call.
  say(other, 3, 200);
  take(news, 3, 200);
  say(other, 201, 300);
  take(news, 201, 300);
  say(one, 301, 301);
  take(news, 301, 301);
  take(all, 1, 301);
}

BOOST_DATA_TEST_CASE(a_session_that_does_not_exist_is_told,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  auto news = on.sessions().follow(here);
  BOOST_TEST(code_of_next(news) == "not_found");
  BOOST_TEST(code_of_next(news) == "end");
  auto nobody = on.sessions().follow({"", "ann", "s"});
  BOOST_TEST(code_of_next(nobody) == "invalid_argument");
}

BOOST_DATA_TEST_CASE(a_start_after_the_end_is_told_with_the_revision,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  say(on, 1, 2);
  auto news = on.sessions().follow(here, {.from = 3});
  const auto told = next_of(news);
  BOOST_TEST(code_of(told) == "not_found");
  BOOST_TEST(told.error().message()
             == "session press/ann/s is at revision 2, so it cannot be "
                "followed from revision 3");
}

BOOST_DATA_TEST_CASE(a_removal_ends_all_followers,
                     data::make(all_kinds) * data::make({false, true}),
                     kind,
                     with_user) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  say(on, 1, 1);
  auto waiting = on.sessions().follow(here);
  auto away = on.sessions().follow(here, {.from = 0});
  answers<event_ptr> taken;
  waiting.next().then(taken.next());
  take(away, 1, 1);
  if (with_user)
    BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  else
    BOOST_TEST(on.sessions().remove(here).value());
  const auto told = taken.await()[0];
  BOOST_TEST(code_of(told) == "not_found");
  BOOST_TEST(told.error().message()
             == "session press/ann/s was removed while it was followed");
  BOOST_TEST(code_of_next(away) == "not_found");
}

BOOST_DATA_TEST_CASE(a_session_made_again_is_another_one,
                     data::make(all_kinds) * data::make({0, 1, 300}),
                     kind,
                     count) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  say(on, 1, count);
  auto waiting = on.sessions().follow(here);
  auto away = on.sessions().follow(here, {.from = 0});
  take(away, 1, count > 0 ? 1 : 0);
  BOOST_TEST(on.sessions().remove(here).value());
  on.open();
  say(on, 1, count + 2);
  BOOST_TEST(code_of_next(waiting) == "not_found");
  // The events that it had fetched come first.
  for (int left = count > 0 ? std::min(count, 256) - 1 : 0; left > 0; --left)
    BOOST_TEST_REQUIRE(code_of_next(away) == "ok");
  BOOST_TEST(code_of_next(away) == "not_found");
}

BOOST_DATA_TEST_CASE(a_session_made_again_elsewhere_is_another_one_too,
                     data::make(shared_kinds) * data::make({0, 1, 300}),
                     kind,
                     count) {
  location_of at(kind);
  runtime_fixture one(at.options());
  runtime_fixture other(at.options());
  other.open();
  say(other, 1, count);
  auto waiting = one.sessions().follow(here);
  auto away = one.sessions().follow(here);
  await_place(waiting);
  await_place(away);
  answers<event_ptr> taken;
  waiting.next().then(taken.next());
  BOOST_TEST(other.sessions().remove(here).value());
  other.open();
  // The same events again.
  say(other, 1, count + 2);
  BOOST_TEST(code_of(taken.await()[0]) == "not_found");
  BOOST_TEST(code_of_next(away) == "not_found");
}

BOOST_DATA_TEST_CASE(a_follower_survives_that_its_session_leaves_memory,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  auto options = at.options();
  options.live_sessions_max = 1;
  runtime_fixture on(std::move(options));
  on.open();
  say(on, 1, 1);
  auto away = on.sessions().follow(here, {.from = 0});
  auto waiting = on.sessions().follow(here);
  take(away, 1, 1);
  for (int number = 0; number < 40; ++number)
    on.open("other" + std::to_string(number));
  say(on, 2, 3);
  take(waiting, 2, 3);
  for (int number = 40; number < 80; ++number)
    on.open("other" + std::to_string(number));
  say(on, 4, 4);
  take(away, 2, 4);
  take(waiting, 4, 4);
}

// Nothing is kept for a reader that is away, and it gets many events at once.
BOOST_DATA_TEST_CASE(a_slow_reader_gets_everything_later,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  auto options = at.options();
  options.events_kept = 8;
  runtime_fixture on(std::move(options));
  on.open();
  auto slow = on.sessions().follow(here);
  say(on, 1, 1);
  take(slow, 1, 1);
  say(on, 2, 1'000);
  take(slow, 2, 1'000);
}

BOOST_DATA_TEST_CASE(many_followers_read_beside_many_writers,
                     data::make(all_kinds),
                     kind) {
  constexpr int writers = 3;
  constexpr int each = 200;
  constexpr std::size_t readers = 20;
  location_of at(kind);
  auto options = at.options();
  options.events_kept = 8;
  runtime_fixture on(std::move(options));
  on.open();
  std::vector<std::vector<std::string>> seen(readers);
  on_threads(writers + readers, [&](std::size_t thread) {
    if (thread < writers) {
      for (int number = 0; number < each; ++number)
        static_cast<void>(on.sessions().append_event(here, counting()).get());
      return;
    }
    auto& own = seen[thread - writers];
    for (auto all = on.sessions().follow(here, {.from = 0});
         const auto& said : all) {
      own.push_back(said->id);
      if (own.size() == writers * each)
        break;
    }
  });
  const auto expected = ids_of(on.events(here));
  for (const auto& own : seen)
    BOOST_TEST(own == expected);
}

BOOST_AUTO_TEST_CASE(only_acknowledged_events_are_delivered) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  auto news = on.sessions().follow(here);
  answers<event_ptr> taken;
  news.next().then(taken.next());
  BOOST_TEST(!taken.any_within(20ms));
  const auto seen = place.script->arrived.count();
  place.script->hold();
  answers<event_ptr> appended;
  on.sessions()
    .append_event(here, change({{"n", 1}}, "e1"))
    .then(appended.next());
  place.script->arrived.await(seen + 1);
  auto late = on.sessions().follow(here, {.from = 0});
  answers<event_ptr> taken_late;
  late.next().then(taken_late.next());
  BOOST_TEST(!taken.any_within(20ms));
  BOOST_TEST(!taken_late.any_within(1ms));
  place.script->release();
  BOOST_TEST((*taken.await()[0])->id == "e1");
  BOOST_TEST((*taken_late.await()[0])->id == "e1");
}

BOOST_AUTO_TEST_CASE(an_event_whose_commit_failed_is_not_delivered) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open();
  auto news = on.sessions().follow(here);
  BOOST_TEST(is_quiet(news));
  auto all = on.sessions().follow(here, {.from = 0});
  place.script->next_commits({store_script::step::fail});
  BOOST_TEST(on.append(here, change({{"n", 0}}, "lost")) == "store_failed");
  say(on, 1, 2);
  take(all, 1, 2);
}

BOOST_AUTO_TEST_CASE(a_failing_store_ends_the_follower_which_can_start_again) {
  const staged_place place;
  auto options = place.options();
  options.events_kept = 4;
  runtime_fixture on(std::move(options));
  on.open();
  say(on, 1, 600);
  auto all = on.sessions().follow(here, {.from = 0});
  take(all, 1, 256);
  place.script->fail_loads(true);
  BOOST_TEST(code_of_next(all) == "store_failed");
  BOOST_TEST((all.revision() == 256U));
  place.script->fail_loads(false);
  auto rest = on.sessions().follow(here, {.from = all.revision()});
  take(rest, 257, 600);
}

// A copy that is older than the newest event takes the place of the file.
BOOST_AUTO_TEST_CASE(a_lost_history_is_told) {
  const temporary_folder folder;
  const auto file = folder.path() / "s.db";
  const auto copy = folder.path() / "copy.db";
  runtime_options options;
  options.store = "sqlite:" + file.string();
  options.on_warning = [](const std::string&) {};
  runtime_fixture on(std::move(options));
  on.open();
  say(on, 1, 2);
  copy_database(file, copy);
  say(on, 3, 3);
  auto away = on.sessions().follow(here, {.from = 0});
  take(away, 1, 3);
  auto waiting = on.sessions().follow(here, {.from = 2});
  take(waiting, 3, 3);
  answers<event_ptr> taken;
  waiting.next().then(taken.next());
  std::filesystem::remove(file.string() + "-wal");
  std::filesystem::remove(file.string() + "-shm");
  std::filesystem::rename(copy, file);
  // The follower looks by itself.
  const auto told = taken.await()[0];
  BOOST_TEST(code_of(told) == "conflict");
  BOOST_TEST(told.error().message()
             == "session press/ann/s has lost its event 3 while it was "
                "followed; read the session again");
  say(on, 4, 5);
  BOOST_TEST(code_of_next(away) == "conflict");
  auto rest = on.sessions().follow(here, {.from = 2});
  take(rest, 4, 5);
}

BOOST_DATA_TEST_CASE(shutting_down_ends_followers,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  auto waiting = on.sessions().follow(here);
  auto idle = on.sessions().follow(here);
  auto blocked = on.sessions().follow(here);
  answers<event_ptr> taken;
  waiting.next().then(taken.next());
  auto end = std::async(std::launch::async,
                        [&] { return code_of(blocked.next().get()); });
  BOOST_TEST(code_of(on.runtime.shut_down()) == "ok");
  BOOST_TEST(code_of(taken.await()[0]) == "cancelled");
  BOOST_TEST(end.get() == "cancelled");
  BOOST_TEST(code_of_next(idle) == "cancelled");
  BOOST_TEST(code_of_next(idle) == "end");
  auto late = on.sessions().follow(here);
  BOOST_TEST(code_of_next(late) == "cancelled");
}

BOOST_DATA_TEST_CASE(closing_ends_the_follower, data::make(all_kinds), kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  auto waiting = on.sessions().follow(here);
  answers<event_ptr> taken;
  waiting.next().then(taken.next());
  waiting.close();
  const auto told = taken.await()[0];
  BOOST_TEST((told && !*told));
  BOOST_TEST(code_of_next(waiting) == "end");
  auto blocked = on.sessions().follow(here);
  auto end = std::async(std::launch::async, [&] {
    std::size_t count = 0;
    // Boost.Test is not thread-safe, so an event is only counted here.
    for (const auto& said : blocked)
      if (said != nullptr && ++count == 2)
        blocked.close();
    return count;
  });
  say(on, 1, 3);
  BOOST_TEST(end.get() == 2U);
}

// The letter of a follower that is gone does no harm, and neither do many.
BOOST_DATA_TEST_CASE(followers_are_destroyed_while_they_wait,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  for (int count = 0; count < 200; ++count) {
    auto gone = on.sessions().follow(here);
    gone.next().then([](const result<event_ptr>&) {});
  }
  auto news = on.sessions().follow(here);
  say(on, 1, 1);
  take(news, 1, 1);
}

BOOST_DATA_TEST_CASE(a_second_call_of_next_is_refused,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  auto news = on.sessions().follow(here);
  answers<event_ptr> first;
  news.next().then(first.next());
  BOOST_TEST(code_of_next(news) == "invalid_argument");
  say(on, 1, 2);
  BOOST_TEST((*first.await()[0])->id == "e1");
  take(news, 2, 2);
}

BOOST_DATA_TEST_CASE(a_coroutine_awaits_events, data::make(all_kinds), kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  std::vector<std::string> seen;
  tally ended;
  auto all = on.sessions().follow(here, {.from = 0});
  const auto read = [&]() -> task<> {
    while (seen.size() < 3) {
      auto next = co_await all.next();
      seen.push_back(next && *next ? (*next)->id : code_of(next));
    }
  };
  start(read(), [&](const std::exception_ptr&) { ended.add(); });
  say(on, 1, 3);
  ended.await(1);
  BOOST_TEST(seen == std::vector<std::string>({"e1", "e2", "e3"}),
             boost::test_tools::per_element());
}

// The stack does not grow with the number of events.
BOOST_DATA_TEST_CASE(a_completion_asks_for_the_next_event,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  say(on, 1, 1'000);
  auto all = on.sessions().follow(here, {.from = 0});
  tally seen;
  std::function<void(result<event_ptr>)> count
    = [&](const result<event_ptr>& next) {
        if (!next || !*next)
          return;
        all.next().then(count);
        // Last: then this call uses nothing of the test any more.
        seen.add();
      };
  all.next().then(count);
  seen.await(1'000);
  say(on, 1'001, 1'001);
  seen.await(1'001);
  all.close();
}

BOOST_AUTO_TEST_CASE(a_completion_may_hold_the_last_reference_to_its_follower) {
  runtime_fixture on;
  on.open();
  say(on, 1, 2);
  tally ended;

  struct told_end {
    explicit told_end(tally& counted) : count(counted) {}

    told_end(const told_end&) = delete;
    told_end& operator=(const told_end&) = delete;

    ~told_end() { count.add(); }

    tally& count;
  };

  struct reader {
    reader(tally& counted, follower from)
      : behind(counted),
        source(std::move(from)) {}

    told_end behind; // Destroyed after the follower.
    follower source;
  };

  auto held
    = std::make_shared<reader>(ended, on.sessions().follow(here, {.from = 0}));
  auto& source = held->source;
  source.next().then([held = std::move(held)](const result<event_ptr>&) {});
  ended.await(1);
  BOOST_TEST(on.append(here, change({{"n", 3}})) == "ok");
}

BOOST_AUTO_TEST_CASE(a_blocking_call_on_a_thread_of_the_runtime_is_refused) {
  runtime_fixture on;
  on.open();
  auto news = on.sessions().follow(here);
  answers<event_ptr> taken;
  on.sessions().get(here).then(
    [&, done = taken.next()](const auto&) { done(news.next().get()); });
  BOOST_TEST(code_of(taken.await()[0]) == "would_deadlock");
}

// The store is asked for changes while a follower waits, and not otherwise.
BOOST_AUTO_TEST_CASE(the_store_is_asked_only_while_a_follower_waits) {
  const staged_place place;
  const auto time = std::make_shared<watched_environment>(1);
  std::atomic<int> looks = 0;
  place.script->on_look = [&looks] { ++looks; };
  auto options = place.options();
  options.environment = time;
  options.session_idle_max = {};
  runtime_fixture on(std::move(options));
  on.open();
  const auto timers = time->waiting();
  {
    auto news = on.sessions().follow(here);
    BOOST_TEST(is_quiet(news));
    BOOST_TEST(time->waiting() == timers + 1);
    const auto before = looks.load();
    tally looked;
    time->advance(20ms);
    BOOST_TEST(time->waiting() == timers + 1);
    // Behind the look in the queue.
    static_cast<void>(on.fetch(here));
    BOOST_TEST(looks > before);
  }
  time->advance(20ms);
  BOOST_TEST(time->waiting() == timers);
}

BOOST_AUTO_TEST_SUITE_END()
