// Readers that follow the state of an app or a user: the newest state after
// each change, never an older one, and always the last one.

#include "troupe/runtime/state_follower.hpp"

#include "../stores/sqlite_copy.hpp"
#include "agent_fixture.hpp"
#include "counting.hpp"
#include "locations.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(state_follow, *boost::unit_test::timeout(120))

namespace {

using next_state = std::optional<state_change>;

shared_state app_of(runtime_fixture& on) {
  return on.sessions().state_of_app("press");
}

shared_state user_of(runtime_fixture& on) {
  return on.sessions().state_of_user("press", "ann");
}

// The app, or user ann, with a key of it.
struct place {
  place(runtime_fixture& on, const std::string& kind)
    : state(kind == "app" ? app_of(on) : user_of(on)),
      key(kind + ":n") {}

  void set(int number) { state.set(key, number).value(); }

  shared_state state;
  std::string key;
};

const std::vector<std::string> all_scopes{"app", "user"};

result<next_state> next_of(state_follower& of) {
  answers<next_state> taken;
  of.next().then(taken.next());
  return taken.await()[0];
}

std::string code_of_next(state_follower& of) {
  const auto next = next_of(of);
  return next && !*next ? "end" : code_of(next);
}

// A delivery as text: `"3 {keys} [differences]"`, with `all` at the end if the
// state before is not known.
std::string shown(const result<next_state>& next) {
  if (!next)
    return code_of(next);
  if (!*next)
    return "end";
  const auto& change = **next;
  return std::to_string(change.revision) + " " + json(change.state.all()).dump()
         + " " + to_json(change.keys).dump() + (change.lists_all ? " all" : "");
}

std::string shown_next(state_follower& of) {
  return shown(next_of(of));
}

void await_place(const state_follower& of) {
  while (!of.revision())
    std::this_thread::yield();
}

bool is_quiet(state_follower& of) {
  answers<next_state> taken;
  of.next().then(taken.next());
  return !taken.any_within(20ms);
}

// Reads until the key has this value. Each state must be newer than the one
// before.
void read_until(state_follower& of, const std::string& key, int last) {
  std::uint64_t before = 0;
  for (const auto& change : of) {
    BOOST_TEST_REQUIRE(change.revision > before);
    before = change.revision;
    if (change.state.get(key, 0) == last)
      return;
  }
}

} // namespace

BOOST_DATA_TEST_CASE(each_change_is_delivered_with_its_keys,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  auto changes = here_is.state.follow();
  const auto key = here_is.key;
  here_is.set(1);
  BOOST_TEST(shown_next(changes)
             == "1 {\"" + key + "\":1} [{\"after\":1,\"key\":\"" + key
                  + "\"}]");
  BOOST_TEST((changes.revision() == 1U));
  here_is.set(2);
  BOOST_TEST(shown_next(changes)
             == "2 {\"" + key + "\":2} [{\"after\":2,\"before\":1,\"key\":\""
                  + key + "\"}]");
  here_is.state.erase(key).value();
  BOOST_TEST(shown_next(changes)
             == "3 {} [{\"before\":2,\"key\":\"" + key + "\"}]");
  BOOST_TEST(is_quiet(changes));
}

BOOST_DATA_TEST_CASE(events_of_sessions_are_changes,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  place here_is(on, where);
  auto changes = here_is.state.follow();
  await_place(changes);
  for (int number = 1; number <= 20; ++number) {
    BOOST_TEST_REQUIRE(on.append(here, counting()) == "ok");
    const auto next = next_of(changes);
    BOOST_TEST_REQUIRE(code_of(next) == "ok");
    BOOST_TEST_REQUIRE((*next)->state.get<int>(here_is.key) == number);
    BOOST_TEST_REQUIRE((*next)->keys.size() == 1U);
  }
  // An event of another scope is none.
  BOOST_TEST(on.append(here, change({{"n", 0}})) == "ok");
  BOOST_TEST(is_quiet(changes));
}

BOOST_DATA_TEST_CASE(a_known_revision_is_delivered_at_once_if_it_is_old,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  here_is.set(1);
  here_is.set(2);
  const auto known = here_is.state.snapshot().value().revision;
  auto present = here_is.state.follow({.from = known});
  auto old = here_is.state.follow({.from = 0});
  const auto all = "2 {\"" + here_is.key + "\":2} [{\"after\":2,\"key\":\""
                   + here_is.key + "\"}] all";
  BOOST_TEST(shown_next(old) == all);
  answers<next_state> taken;
  present.next().then(taken.next());
  BOOST_TEST(!taken.any_within(20ms));
  here_is.set(3);
  // The reader knows its revision, and the owner knows the keys of that.
  BOOST_TEST(shown(taken.await()[0])
             == "3 {\"" + here_is.key
                  + "\":3} [{\"after\":3,\"before\":2,\"key\":\"" + here_is.key
                  + "\"}]");
  auto beyond = here_is.state.follow({.from = 9});
  const auto told = next_of(beyond);
  BOOST_TEST(code_of(told) == "not_found");
  BOOST_TEST(told.error().message()
             == "the state of " + where + " press"
                  + (where == "user" ? "/ann" : "")
                  + " is at revision 3, so it cannot be followed from revision "
                    "9");
}

BOOST_DATA_TEST_CASE(a_slow_reader_gets_the_last_state_alone,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  here_is.set(0);
  auto slow = here_is.state.follow();
  await_place(slow);
  for (int number = 1; number <= 100; ++number)
    here_is.set(number);
  BOOST_TEST(shown_next(slow)
             == "101 {\"" + here_is.key
                  + "\":100} [{\"after\":100,\"before\":0,\"key\":\""
                  + here_is.key + "\"}]");
  BOOST_TEST(is_quiet(slow));
}

BOOST_DATA_TEST_CASE(readers_beside_writers_see_the_end,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  constexpr int writers = 2;
  constexpr int each = 100;
  constexpr std::size_t readers = 8;
  location_of at(kind);
  runtime_fixture on(at.options());
  on.open();
  place here_is(on, where);
  std::atomic<int> wrong = 0;
  on_threads(writers + readers, [&](std::size_t thread) {
    if (thread < writers) {
      for (int number = 0; number < each; ++number)
        static_cast<void>(on.sessions().append_event(here, counting()).get());
      return;
    }
    std::uint64_t before = 0;
    auto changes = here_is.state.follow({.from = 0});
    for (const auto& change : changes) {
      // One event adds one, so the number is the revision.
      if (change.revision <= before
          || change.state.get<std::uint64_t>(here_is.key) != change.revision)
        ++wrong;
      before = change.revision;
      if (change.revision == writers * each)
        break;
    }
  });
  BOOST_TEST(wrong == 0);
}

BOOST_DATA_TEST_CASE(changes_of_others_come_although_nobody_calls,
                     data::make(shared_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture one(at.options());
  runtime_fixture other(at.options());
  place here_is(one, where);
  place there(other, where);
  auto changes = here_is.state.follow();
  await_place(changes);
  for (int number = 1; number <= 10; ++number) {
    there.set(number);
    const auto next = next_of(changes);
    BOOST_TEST_REQUIRE(code_of(next) == "ok");
    BOOST_TEST_REQUIRE((*next)->state.get<int>(here_is.key) == number);
  }
  here_is.set(11);
  there.set(12);
  read_until(changes, here_is.key, 12);
}

BOOST_DATA_TEST_CASE(a_removal_of_the_user_ends_its_readers,
                     data::make(all_kinds) * data::make({false, true}),
                     kind,
                     is_again) {
  location_of at(kind);
  runtime_fixture on(at.options());
  const auto user = user_of(on);
  user.set("user:n", 1).value();
  auto waiting = user.follow();
  auto away = user.follow({.from = 0});
  BOOST_TEST(code_of_next(away) == "ok");
  answers<next_state> taken;
  waiting.next().then(taken.next());
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  const auto told = taken.await()[0];
  BOOST_TEST(code_of(told) == "not_found");
  BOOST_TEST(told.error().message()
             == "user press/ann was removed while its state was followed");
  BOOST_TEST(code_of_next(waiting) == "end");
  // Another user of the same name, at a higher revision.
  if (is_again)
    for (int number = 1; number <= 3; ++number)
      user.set("user:n", number).value();
  BOOST_TEST(code_of_next(away) == "not_found");
  auto fresh = user.follow();
  user.set("user:n", 7).value();
  read_until(fresh, "user:n", 7);
}

BOOST_DATA_TEST_CASE(a_removal_elsewhere_ends_readers_too,
                     data::make(shared_kinds) * data::make({0, 1, 3}),
                     kind,
                     again) {
  location_of at(kind);
  runtime_fixture one(at.options());
  runtime_fixture other(at.options());
  const auto there = user_of(other);
  for (int number = 0; number < 3; ++number)
    there.set("user:n", number).value();
  auto waiting = user_of(one).follow();
  auto away = user_of(one).follow();
  await_place(waiting);
  await_place(away);
  answers<next_state> taken;
  waiting.next().then(taken.next());
  BOOST_TEST(other.sessions().remove_user("press", "ann").value());
  for (int number = 0; number < again; ++number)
    there.set("user:n", 1).value();
  BOOST_TEST(code_of(taken.await()[0]) == "not_found");
  BOOST_TEST(code_of_next(away) == "not_found");
}

// The start of a reader is answered again while others write the user, and
// remove it.
BOOST_DATA_TEST_CASE(a_start_that_is_stale_twice_is_a_start,
                     data::make({0, 1}),
                     writes) {
  const staged_place store;
  runtime_fixture other(store.beside());
  place there(other, "user");
  for (int number = 1; number <= writes; ++number)
    there.set(number);
  auto options = store.options();
  options.follow_period.reset();
  std::atomic<int> looks = 0;
  store.script->on_look = [&] {
    const auto look = ++looks;
    if (look == 1)
      there.set(7);
    else if (look == 2)
      other.sessions().remove_user("press", "ann").value();
  };
  runtime_fixture on(std::move(options));
  place here_is(on, "user");
  auto changes = here_is.state.follow();
  answers<next_state> taken;
  changes.next().then(taken.next());
  while (!changes.revision() && !taken.any_within(0ms))
    std::this_thread::yield();
  BOOST_TEST((changes.revision() == 0U));
  here_is.set(8);
  BOOST_TEST(shown(taken.await()[0])
             == "1 {\"user:n\":8} [{\"after\":8,\"key\":\"user:n\"}]");
  BOOST_TEST(looks >= 3);
}

// Without a user there is nothing to remove, so the reader waits for the first
// change.
BOOST_DATA_TEST_CASE(a_user_that_does_not_exist_can_be_followed,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  auto changes = user_of(on).follow();
  answers<next_state> taken;
  changes.next().then(taken.next());
  await_place(changes);
  BOOST_TEST((changes.revision() == 0U));
  BOOST_TEST(!taken.any_within(20ms));
  BOOST_TEST(!on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(!taken.any_within(20ms));
  user_of(on).set("user:n", 1).value();
  BOOST_TEST(code_of(taken.await()[0]) == "ok");
}

BOOST_DATA_TEST_CASE(the_keys_of_a_removed_app_are_a_change,
                     data::make(all_kinds),
                     kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  app_of(on).set("app:n", 1).value();
  auto changes = app_of(on).follow();
  await_place(changes);
  on.sessions().remove_app("press").value();
  BOOST_TEST(shown_next(changes) == "2 {} [{\"before\":1,\"key\":\"app:n\"}]");
}

BOOST_AUTO_TEST_CASE(bad_names_are_told) {
  runtime_fixture on;
  auto nobody = on.sessions().state_of_user("press", "").follow();
  BOOST_TEST(code_of_next(nobody) == "invalid_argument");
  BOOST_TEST(code_of_next(nobody) == "end");
  auto nothing = on.sessions().state_of_app(" ").follow();
  BOOST_TEST(code_of_next(nothing) == "invalid_argument");
}

BOOST_DATA_TEST_CASE(only_durable_states_are_delivered,
                     data::make(all_scopes),
                     where) {
  const staged_place store;
  runtime_fixture on(store.options());
  place here_is(on, where);
  here_is.set(0);
  auto changes = here_is.state.follow();
  answers<next_state> taken;
  changes.next().then(taken.next());
  await_place(changes);
  const auto seen = store.script->arrived.count();
  store.script->hold();
  answers<shared_write> written;
  here_is.state.set(here_is.key, 1).then(written.next());
  store.script->arrived.await(seen + 1);
  BOOST_TEST(!taken.any_within(20ms));
  store.script->release();
  BOOST_TEST(shown(taken.await()[0]).starts_with("2 "));
}

BOOST_DATA_TEST_CASE(a_change_whose_commit_failed_is_not_delivered,
                     data::make(all_scopes),
                     where) {
  const staged_place store;
  runtime_fixture on(store.options());
  place here_is(on, where);
  here_is.set(0);
  auto changes = here_is.state.follow();
  answers<next_state> taken;
  changes.next().then(taken.next());
  await_place(changes);
  store.script->next_commits({store_script::step::fail});
  BOOST_TEST(code_of(here_is.state.set(here_is.key, 1).get())
             == "store_failed");
  BOOST_TEST(!taken.any_within(20ms));
  here_is.set(2);
  BOOST_TEST(shown(taken.await()[0])
             == "2 {\"" + here_is.key
                  + "\":2} [{\"after\":2,\"before\":0,\"key\":\"" + here_is.key
                  + "\"}]");
}

BOOST_DATA_TEST_CASE(a_store_that_cannot_be_read_ends_the_reader,
                     data::make(all_scopes),
                     where) {
  const staged_place store;
  runtime_fixture one(store.options());
  runtime_fixture other(store.options());
  place here_is(one, where);
  here_is.set(1);
  auto changes = here_is.state.follow();
  await_place(changes);
  other.open(); // Keeps the owners of the other runtime in memory.
  place there(other, where);
  there.set(2);
  BOOST_TEST(code_of_next(changes) == "ok");
  store.script->fail_loads(true);
  there.set(3);
  BOOST_TEST(code_of_next(changes) == "store_failed");
  BOOST_TEST((changes.revision() == 2U));
  store.script->fail_loads(false);
  auto rest = here_is.state.follow({.from = changes.revision()});
  read_until(rest, here_is.key, 3);
}

// A copy that is older than the newest change takes the place of the file.
BOOST_DATA_TEST_CASE(a_lost_history_is_told,
                     data::make(all_scopes) * data::make({0, 1}),
                     where,
                     again) {
  const temporary_folder folder;
  const auto file = folder.path() / "s.db";
  const auto copy = folder.path() / "copy.db";
  runtime_options options;
  options.store = "sqlite:" + file.string();
  options.on_warning = [](const std::string&) {};
  runtime_fixture on(std::move(options));
  place here_is(on, where);
  here_is.set(1);
  copy_database(file, copy);
  here_is.set(2);
  auto away = here_is.state.follow();
  auto waiting = here_is.state.follow();
  await_place(away);
  await_place(waiting);
  answers<next_state> taken;
  waiting.next().then(taken.next());
  std::filesystem::remove(file.string() + "-wal");
  std::filesystem::remove(file.string() + "-shm");
  std::filesystem::rename(copy, file);
  // The reader looks by itself.
  const auto told = taken.await()[0];
  BOOST_TEST(code_of(told) == "conflict");
  BOOST_TEST(told.error().message()
             == "the state of " + where + " press"
                  + (where == "user" ? "/ann" : "")
                  + " was at revision 2 and is at revision 1, because the "
                    "store has lost commits; read it again");
  // The same revision as before, with another value.
  for (int count = 0; count < again; ++count)
    here_is.set(3);
  BOOST_TEST(code_of_next(away) == "conflict");
}

BOOST_DATA_TEST_CASE(shutting_down_ends_readers,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  auto waiting = here_is.state.follow();
  auto idle = here_is.state.follow();
  auto blocked = here_is.state.follow();
  answers<next_state> taken;
  waiting.next().then(taken.next());
  auto end = std::async(std::launch::async,
                        [&] { return code_of(blocked.next().get()); });
  BOOST_TEST(code_of(on.runtime.shut_down()) == "ok");
  BOOST_TEST(code_of(taken.await()[0]) == "cancelled");
  BOOST_TEST(end.get() == "cancelled");
  BOOST_TEST(code_of_next(idle) == "cancelled");
  BOOST_TEST(code_of_next(idle) == "end");
  auto late = here_is.state.follow();
  BOOST_TEST(code_of_next(late) == "cancelled");
}

BOOST_DATA_TEST_CASE(closing_ends_the_reader,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  auto waiting = here_is.state.follow();
  answers<next_state> taken;
  waiting.next().then(taken.next());
  BOOST_TEST(code_of_next(waiting) == "invalid_argument");
  waiting.close();
  BOOST_TEST(shown(taken.await()[0]) == "end");
  BOOST_TEST(code_of_next(waiting) == "end");
  for (int count = 0; count < 200; ++count) {
    auto gone = here_is.state.follow();
    gone.next().then([](const result<next_state>&) {});
  }
  auto changes = here_is.state.follow();
  here_is.set(1);
  read_until(changes, here_is.key, 1);
}

// A user that only a reader has made is listed as long as it is followed.
BOOST_AUTO_TEST_CASE(a_user_without_readers_leaves_memory) {
  runtime_fixture on;
  const auto listed
    = [&] { return on.sessions().list_users({"press"}).value().names.size(); };
  {
    auto changes = user_of(on).follow();
    auto others = user_of(on).follow();
    BOOST_TEST(is_quiet(changes));
    BOOST_TEST(is_quiet(others));
    // The readers may still be about to wait.
    while (listed() != 1)
      std::this_thread::yield();
  }
  while (listed() > 0)
    std::this_thread::yield();
}

BOOST_DATA_TEST_CASE(one_write_answers_thousands,
                     data::make(all_kinds) * data::make(all_scopes),
                     kind,
                     where) {
  constexpr std::size_t count = 5'000;
  location_of at(kind);
  runtime_fixture on(at.options());
  place here_is(on, where);
  here_is.set(0);
  std::vector<state_follower> readers;
  answers<next_state> taken;
  for (std::size_t reader = 0; reader < count; ++reader) {
    readers.push_back(here_is.state.follow({.from = 1}));
    readers.back().next().then(taken.next());
  }
  here_is.set(1);
  for (const auto& told : taken.await()) {
    BOOST_TEST_REQUIRE(code_of(told) == "ok");
    BOOST_TEST_REQUIRE((*told)->state.get<int>(here_is.key) == 1);
  }
}

BOOST_DATA_TEST_CASE(a_coroutine_awaits_states, data::make(all_kinds), kind) {
  location_of at(kind);
  runtime_fixture on(at.options());
  auto changes = app_of(on).follow();
  std::vector<std::string> seen;
  tally got;
  tally ended;
  const auto read = [&]() -> task<> {
    while (seen.size() < 2) {
      auto next = co_await changes.next();
      seen.push_back(shown(next).substr(0, 1));
      got.add();
    }
  };
  start(read(), [&](const std::exception_ptr&) { ended.add(); });
  app_of(on).set("app:n", 1).value();
  got.await(1);
  app_of(on).set("app:n", 2).value();
  ended.await(1);
  BOOST_TEST(seen == std::vector<std::string>({"1", "2"}),
             boost::test_tools::per_element());
}

// Owners without sessions leave memory; those with readers stay.
BOOST_AUTO_TEST_CASE(a_reader_that_is_away_survives_that_its_owner_leaves) {
  const staged_place store;
  auto options = store.options();
  options.live_sessions_max = 1;
  runtime_fixture on(std::move(options));
  place user(on, "user");
  user.set(1);
  auto away = user.state.follow();
  await_place(away);
  for (int number = 0; number < 40; ++number)
    on.sessions()
      .create({"press", "bob", "other" + std::to_string(number)})
      .value();
  user.set(2);
  BOOST_TEST(shown_next(away)
             == "2 {\"user:n\":2} "
                "[{\"after\":2,\"before\":1,\"key\":\"user:n\"}]");
}

BOOST_AUTO_TEST_SUITE_END()
