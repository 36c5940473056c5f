// The public calls of sessions: keys, creating, reading, listing, removing, and
// the three forms of every call.

#include "troupe/runtime/runtime.hpp"

#include "runtime_fixture.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <set>
#include <thread>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(sessions, *boost::unit_test::timeout(120))

namespace {

const std::string long_id(513, 'x');
const std::string with_nul("a\0b", 3);

// Returns the codes of all calls with one key.
std::vector<std::string> codes_of_all_calls(runtime_fixture& on,
                                            const session_key& key) {
  auto& sessions = on.sessions();
  return {
    code_of(sessions.get(key).get()),
    code_of(sessions.append_event(key, change({{"k", 1}})).get()),
    code_of(sessions.state(key).snapshot().get()),
    code_of(sessions.state(key).get("k").get()),
    code_of(sessions.state(key).set("k", 1).get()),
    code_of(sessions.state(key).erase("k").get()),
    code_of(on.runtime
              .run(custom("nobody",
                          [](invocation_context&) -> agent_run { co_return; }),
                   key,
                   "hi")
              .wait()
              .get())};
}

// Awaits every call once, and keeps the codes.
task<> call_all(session_service& sessions, std::vector<std::string>& codes) {
  create_request request;
  request.app = "press";
  request.user = "ann";
  auto created = co_await sessions.create(request);
  codes.push_back(code_of(created));
  const auto key = created.value().key();
  codes.push_back(code_of(co_await sessions.get(key)));
  const auto said = change({{"k", 1}});
  codes.push_back(code_of(co_await sessions.append_event(key, said)));
  const event_ptr shared = std::make_shared<event>(said);
  codes.push_back(code_of(co_await sessions.append_event(key, shared)));
  list_request wanted;
  wanted.app = "press";
  codes.push_back(code_of(co_await sessions.list(wanted)));
  codes.push_back(code_of(co_await sessions.user_state("press", "ann")));
  codes.push_back(code_of(co_await sessions.app_state("press")));
  codes.push_back(code_of(co_await sessions.remove(key)));
  codes.push_back(code_of(co_await sessions.remove_user("press", "ann")));
}

std::vector<std::string> ids_of(const session_page& page) {
  std::vector<std::string> ids;
  for (const auto& row : page.sessions)
    ids.push_back(row.key().id);
  return ids;
}

} // namespace

// -- keys ----

BOOST_DATA_TEST_CASE(bad_ids_are_refused_by_every_call,
                     data::make({std::string(),
                                 std::string(" \t\n"),
                                 long_id,
                                 with_nul,
                                 std::string("\xff")}),
                     bad) {
  runtime_fixture on;
  auto& sessions = on.sessions();
  BOOST_TEST(code_of(sessions.create({bad, "ann"}).get())
             == "invalid_argument");
  BOOST_TEST(code_of(sessions.create({"press", bad}).get())
             == "invalid_argument");
  for (const session_key& key : {session_key{bad, "ann", "s"},
                                 session_key{"press", bad, "s"},
                                 session_key{"press", "ann", bad}}) {
    for (const auto& code : codes_of_all_calls(on, key))
      BOOST_TEST(code == "invalid_argument");
    BOOST_TEST(code_of(sessions.remove(key).get()) == "invalid_argument");
  }
  BOOST_TEST(code_of(sessions.list({bad}).get()) == "invalid_argument");
  BOOST_TEST(code_of(sessions.list({"press", bad}).get())
             == "invalid_argument");
  BOOST_TEST(code_of(sessions.app_state(bad).get()) == "invalid_argument");
  BOOST_TEST(code_of(sessions.user_state("press", bad).get())
             == "invalid_argument");
  BOOST_TEST(code_of(sessions.remove_user(bad, "ann").get())
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(bad_session_ids_are_refused_on_create) {
  runtime_fixture on;
  for (const auto& bad : {long_id, with_nul, std::string("\xc3")})
    BOOST_TEST(code_of(on.sessions().create({"press", "ann", bad}).get())
               == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(ids_are_trimmed_on_every_way_in) {
  runtime_fixture on;
  auto& sessions = on.sessions();
  const auto created = sessions.create({" press\n", "\tann ", " s "}).value();
  BOOST_TEST((created.key() == session_key{"press", "ann", "s"}));
  const session_key padded{"press ", " ann", "\ns"};
  BOOST_TEST(on.append(padded, {{"k", 1}}) == "ok");
  BOOST_TEST(on.fetch(padded).revision() == 1U);
  BOOST_TEST(sessions.list({" press", "ann "}).value().sessions.size() == 1U);
  BOOST_TEST(sessions.remove(padded).value());
}

BOOST_AUTO_TEST_CASE(a_blank_id_means_a_new_one) {
  runtime_fixture on;
  std::set<std::string> ids;
  for (const std::string blank : {"", " ", "\t\n"})
    ids.insert(on.sessions().create({"press", "ann", blank}).value().key().id);
  BOOST_TEST(ids.size() == 3U);
  for (const auto& id : ids)
    BOOST_TEST(id.size() == 36U);
}

BOOST_AUTO_TEST_CASE(ids_of_512_bytes_fit) {
  runtime_fixture on;
  const auto key
    = on.open(std::string(512, 's'), json::object(), std::string(512, 'u'));
  BOOST_TEST(on.append(key, {{"k", 1}}) == "ok");
}

// -- create ----

BOOST_AUTO_TEST_CASE(initial_state_is_split_by_scope) {
  runtime_fixture on;
  const auto created = on.sessions()
                         .create({"press", "ann", "s"},
                                 {{"topic", "owls"},
                                  {"user:name", "Ann"},
                                  {"app:theme", "dark"},
                                  {"temp:step", 1},
                                  {"App:odd", true},
                                  {"gone", nullptr},
                                  {"app:gone", nullptr}})
                         .value();
  BOOST_TEST(created.revision() == 0U);
  BOOST_TEST(created.events().empty());
  const json merged{{"topic", "owls"},
                    {"user:name", "Ann"},
                    {"app:theme", "dark"},
                    {"App:odd", true}};
  BOOST_TEST(created.state().all() == merged);
  BOOST_TEST(on.state(created.key()) == merged);
  BOOST_TEST(on.fetch(created.key()).revision() == 0U);
  BOOST_TEST(on.user_state() == json({{"name", "Ann"}}));
  BOOST_TEST(on.app_state() == json({{"theme", "dark"}}));
}

BOOST_AUTO_TEST_CASE(a_second_session_sees_what_user_and_app_have) {
  runtime_fixture on;
  on.open("one", {{"user:name", "Ann"}, {"app:theme", "dark"}, {"own", 1}});
  const auto second = on.sessions().create({"press", "ann", "two"}).value();
  BOOST_TEST(second.state().all()
             == json({{"user:name", "Ann"}, {"app:theme", "dark"}}));
  const auto other = on.open("three", json::object(), "ben");
  BOOST_TEST(on.state(other) == json({{"app:theme", "dark"}}));
}

BOOST_DATA_TEST_CASE(bad_keys_are_refused_on_create_and_append,
                     data::make({std::string("__x"),
                                 std::string("app:__x"),
                                 std::string("user:__x"),
                                 std::string("temp:__x"),
                                 std::string(),
                                 std::string("app:"),
                                 std::string("user:"),
                                 std::string(257, 'k'),
                                 with_nul,
                                 std::string("\xff")}),
                     bad) {
  runtime_fixture on;
  BOOST_TEST(
    code_of(on.sessions().create({"press", "ann", "s"}, {{bad, 1}}).get())
    == "invalid_argument");
  const auto key = on.open();
  BOOST_TEST(code_of(on.sessions().state(key).set(bad, 1).get())
             == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().state(key).erase(bad).get())
             == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().state(key).get(bad).get())
             == "invalid_argument");
  BOOST_TEST(on.fetch(key).revision() == 0U);
}

BOOST_AUTO_TEST_CASE(bad_initial_state_is_refused_and_makes_nothing) {
  runtime_fixture on;
  auto deep = json::array();
  for (int level = 0; level < 70; ++level)
    deep = json::array({deep});
  for (const json& bad : {json::array({1}),
                          json("text"),
                          json{{"k", "\xff"}},
                          json{{"k", std::numeric_limits<double>::infinity()}},
                          json{{"k", deep}}})
    BOOST_TEST(code_of(on.sessions().create({"press", "ann", "s"}, bad).get())
               == "invalid_argument");
  BOOST_TEST(
    code_of(on.sessions()
              .create({"press", "ann", "s"},
                      {{"app:ok", 1}, {"k", std::string(300'000, 'x')}})
              .get())
    == "too_large");
  BOOST_TEST(on.app_state() == json::object());
  BOOST_TEST(on.rows().empty());
}

BOOST_AUTO_TEST_CASE(a_second_create_of_a_live_key_changes_nothing) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}, {"app:n", 1}});
  BOOST_TEST(code_of(on.sessions()
                       .create({"press", "ann", "s"},
                               {{"k", 2}, {"app:n", 2}, {"user:n", 2}})
                       .get())
             == "already_exists");
  BOOST_TEST(on.state(key) == json({{"k", 1}, {"app:n", 1}}));
}

BOOST_AUTO_TEST_CASE(of_sixteen_racing_creates_one_wins) {
  runtime_fixture on;
  for (int round = 0; round < 50; ++round) {
    const auto id = "s" + std::to_string(round);
    std::atomic<int> won = 0;
    std::atomic<int> lost = 0;
    std::atomic<int> winner = -1;
    on_threads(16, [&](std::size_t index) {
      const auto mark = static_cast<int>(index);
      const auto code
        = code_of(on.sessions()
                    .create({"press", "ann", id},
                            {{"k", mark}, {"user:k", mark}, {"app:k", mark}})
                    .get());
      if (code == "ok")
        winner = mark;
      (code == "ok" ? won : lost) += code == "ok" || code == "already_exists";
    });
    BOOST_TEST(won == 1);
    BOOST_TEST(lost == 15);
    const auto by = winner.load();
    BOOST_TEST(on.state({"press", "ann", id})
               == json({{"k", by}, {"user:k", by}, {"app:k", by}}));
  }
}

BOOST_AUTO_TEST_CASE(a_session_is_never_seen_without_its_initial_state) {
  runtime_fixture on;
  for (int round = 0; round < 300; ++round) {
    const session_key key{"press", "ann", "s" + std::to_string(round)};
    answers<session> created;
    std::thread reader([&] {
      for (;;) {
        const auto page = on.sessions().list({"press", "ann"}).get();
        const auto seen = on.sessions().get(key).get();
        if (!seen)
          continue;
        // Checked later on the test's thread.
        created.next()(seen);
        for (const auto& row : page->sessions)
          created.next()(row);
        return;
      }
    });
    on.sessions().create(key, {{"k", 1}, {"app:k", 1}}).then(created.next());
    reader.join();
    for (const auto& seen : created.await()) {
      BOOST_TEST(seen->state().contains("k"));
      BOOST_TEST(seen->state().contains("app:k"));
      BOOST_TEST((seen->last_update_time() != timestamp()));
    }
    on.sessions().remove(key).value();
  }
}

// -- missing sessions ----

BOOST_AUTO_TEST_CASE(unknown_sessions_are_not_found_and_not_made) {
  runtime_fixture on;
  on.open();
  for (const session_key& key : {session_key{"other", "ann", "s"},
                                 session_key{"press", "ben", "s"},
                                 session_key{"press", "ann", "t"}}) {
    for (const auto& code : codes_of_all_calls(on, key))
      BOOST_TEST(code == "not_found");
    BOOST_TEST(!on.sessions().remove(key).value());
  }
  BOOST_TEST(on.rows().size() == 1U);
  BOOST_TEST(on.sessions().list({"other"}).value().sessions.empty());
  BOOST_TEST(on.sessions().list({"press", "ben"}).value().sessions.empty());
  BOOST_TEST(on.sessions().app_state("other").value() == json::object());
  BOOST_TEST(on.user_state("ben") == json::object());
  BOOST_TEST(!on.sessions().remove_user("press", "ben").value());
  BOOST_TEST(!on.sessions().remove_user("other", "ann").value());
  BOOST_TEST(on.fetch({"press", "ann", "s"}).revision() == 0U);
}

// -- get ----

BOOST_AUTO_TEST_CASE(filters_choose_events_and_never_change_the_state) {
  runtime_fixture on;
  const auto key = on.open();
  const auto at
    = [](int seconds) { return timestamp(std::chrono::seconds(seconds)); };
  for (int count = 1; count <= 10; ++count) {
    auto said = change({{"k", count}});
    said.content = user_text(std::to_string(count));
    said.timestamp = at(count);
    BOOST_TEST(on.append(key, said) == "ok");
  }
  const auto shown = [&](get_options options) {
    const auto fetched = on.sessions().get(key, options).value();
    BOOST_TEST(fetched.state().get<int>("k") == 10);
    BOOST_TEST(fetched.revision() == 10U);
    std::string texts;
    for (const auto& said : fetched.events())
      texts += said->text() + ' ';
    return texts;
  };
  BOOST_TEST(shown({}) == "1 2 3 4 5 6 7 8 9 10 ");
  BOOST_TEST(shown({.num_recent_events = 3}) == "8 9 10 ");
  BOOST_TEST(shown({.num_recent_events = 0}) == "");
  BOOST_TEST(shown({.num_recent_events = 99}) == "1 2 3 4 5 6 7 8 9 10 ");
  BOOST_TEST(shown({.after = at(9)}) == "9 10 ");
  BOOST_TEST(shown({.after = at(11)}) == "");
  BOOST_TEST(shown({.num_recent_events = 3, .after = at(5)}) == "8 9 10 ");
  BOOST_TEST(shown({.num_recent_events = 3, .after = at(10)}) == "10 ");
}

BOOST_AUTO_TEST_CASE(a_fetched_session_stays_as_it_was) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}, {"app:k", 1}});
  const auto before = on.fetch(key);
  on.append(key, {{"k", 2}, {"app:k", 2}});
  BOOST_TEST(before.state().all() == json({{"k", 1}, {"app:k", 1}}));
  BOOST_TEST(before.events().empty());
  on.sessions().remove(key).value();
  BOOST_TEST(before.state().get<int>("k") == 1);
}

// -- list ----

BOOST_AUTO_TEST_CASE(list_gives_newest_first_with_merged_state_and_no_events) {
  const auto time = std::make_shared<simulated_environment>(1);
  runtime_fixture on(runtime_fixture::in(time));
  for (const std::string id : {"a", "b", "c"}) {
    on.open(id, {{"own", id}, {"app:n", id}});
    time->advance(std::chrono::seconds(1));
  }
  on.append({"press", "ann", "a"}, {{"user:k", 1}});
  const auto page = on.sessions().list({"press"}).value();
  BOOST_TEST(ids_of(page) == std::vector<std::string>({"a", "c", "b"}),
             boost::test_tools::per_element());
  for (const auto& row : page.sessions) {
    BOOST_TEST(row.events().empty());
    BOOST_TEST(row.state().all()
               == json({{"own", row.key().id}, {"app:n", "c"}, {"user:k", 1}}));
  }
  BOOST_TEST(page.next_cursor.empty());
  for (const auto& user :
       {std::optional<std::string>(), std::optional<std::string>("ann")}) {
    const auto first = on.sessions().list({"press", user, 1}).value();
    BOOST_TEST(ids_of(first) == std::vector<std::string>({"a"}),
               boost::test_tools::per_element());
  }
}

BOOST_DATA_TEST_CASE(pages_show_every_session_once,
                     data::make({1U, 2U, 7U, 56U, 57U, 100U}),
                     limit) {
  runtime_fixture on(
    runtime_fixture::in(std::make_shared<simulated_environment>(2)));
  for (int count = 0; count < 57; ++count) // Many at the same moment.
    on.open("s" + std::to_string(count),
            json::object(),
            "u" + std::to_string(count % 5));
  std::set<session_key> seen;
  std::size_t rows = 0;
  list_request request{"press", {}, limit};
  do {
    const auto page = on.sessions().list(request).value();
    BOOST_TEST(page.sessions.size() <= limit);
    for (const auto& row : page.sessions)
      seen.insert(row.key());
    rows += page.sessions.size();
    request.cursor = page.next_cursor;
  } while (!request.cursor.empty());
  BOOST_TEST(seen.size() == 57U);
  BOOST_TEST(rows == 57U);
  BOOST_TEST(on.sessions().list({"press", "u0", 100}).value().sessions.size()
             == 12U);
}

BOOST_AUTO_TEST_CASE(foreign_cursors_and_empty_pages_are_refused) {
  runtime_fixture on;
  on.open();
  for (const std::string bad : {"x",
                                "{}",
                                "[]",
                                "[1,2,3]",
                                "[1.5,\"a\",\"b\"]",
                                "[1,\"a\",\"b\",4]",
                                "\xff"})
    BOOST_TEST(code_of(on.sessions().list({"press", {}, 100, bad}).get())
               == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().list({"press", {}, 0}).get())
             == "invalid_argument");
}

// -- remove ----

BOOST_AUTO_TEST_CASE(remove_takes_the_session_and_leaves_user_and_app) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}, {"user:k", 1}, {"app:k", 1}});
  BOOST_TEST(on.sessions().remove(key).value());
  BOOST_TEST(!on.sessions().remove(key).value());
  for (const auto& code : codes_of_all_calls(on, key))
    BOOST_TEST(code == "not_found");
  BOOST_TEST(on.rows().empty());
  BOOST_TEST(on.user_state() == json({{"k", 1}}));
  BOOST_TEST(on.app_state() == json({{"k", 1}}));
}

BOOST_AUTO_TEST_CASE(a_removed_key_can_be_created_again) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}, {"user:k", 1}});
  auto said = change({{"k", 2}}, "e1");
  BOOST_TEST(on.append(key, said) == "ok");
  on.sessions().remove(key).value();
  on.open("s");
  BOOST_TEST(on.state(key) == json({{"user:k", 1}}));
  BOOST_TEST(on.fetch(key).revision() == 0U);
  // Ids are remembered per session, and this is a new one.
  BOOST_TEST(on.append(key, said) == "ok");
  BOOST_TEST(on.fetch(key).revision() == 1U);
}

BOOST_AUTO_TEST_CASE(an_append_around_a_remove_is_stored_or_not_found) {
  runtime_fixture on;
  for (int round = 0; round < 100; ++round) {
    const auto key = on.open();
    answers<event_ptr> appended;
    answers<bool> removed;
    std::vector<completion<event_ptr>> slots;
    for (int count = 0; count < 40; ++count)
      slots.push_back(appended.next());
    const auto drop = removed.next();
    on_threads(5, [&](std::size_t index) {
      if (index == 4)
        return on.sessions().remove(key).then(drop);
      for (std::size_t count = 0; count < 10; ++count)
        on.sessions()
          .append_event(key,
                        operate({operation_on("app:n", "add", 1),
                                 operation_on("n", "add", 1)}))
          .then(slots[index * 10 + count]);
    });
    int stored = 0;
    for (const auto& each : appended.await()) {
      stored += each.has_value();
      BOOST_TEST((each || each.error().code() == errc::not_found));
    }
    BOOST_TEST(removed.await().front().value());
    const auto total = on.app_state().value("n", 0);
    BOOST_TEST(total == stored);
    on.open("reset", {{"app:n", 0}});
    on.sessions().remove({"press", "ann", "reset"}).value();
  }
}

BOOST_AUTO_TEST_CASE(calls_behind_a_remove_find_the_next_session) {
  runtime_fixture on;
  const auto key = on.open("s", {{"k", 1}});
  answers<bool> removed;
  answers<session> created;
  for (int round = 0; round < 20; ++round) {
    on.sessions().remove(key).then(removed.next());
    on.sessions()
      .create({"press", "ann", "s"}, {{"round", round}})
      .then(created.next());
  }
  for (const auto& each : removed.await())
    BOOST_TEST(each.value());
  for (const auto& each : created.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(on.state(key) == json({{"round", 19}}));
}

// A call that waits for a removal has the app's keys of an earlier moment.
BOOST_AUTO_TEST_CASE(what_waited_for_a_removal_sees_scopes_that_fit) {
  runtime_fixture on;
  const auto other = on.open("other", {{"user:n", 0}, {"app:n", 0}});
  const auto key = on.open("s");
  for (int round = 0; round < 400; ++round) {
    answers<event_ptr> appended;
    answers<bool> removed;
    answers<session> seen;
    const auto step = [&] {
      on.sessions()
        .append_event(other,
                      operate({operation_on("user:n", "add", 1),
                               operation_on("app:n", "add", 1)}))
        .then(appended.next());
    };
    step();
    on.sessions().remove(key).then(removed.next());
    step();
    on.sessions().create({"press", "ann", "s"}).then(seen.next());
    step();
    on.sessions().get(key).then(seen.next());
    step();
    on.sessions().get(other).then(seen.next());
    for (const auto& each : seen.await()) {
      const auto all = each->state().all();
      BOOST_TEST(all.at("user:n") == all.at("app:n"));
    }
    for (const auto& each : appended.await())
      BOOST_TEST(code_of(each) == "ok");
    removed.await();
  }
}

BOOST_AUTO_TEST_CASE(remove_user_takes_sessions_and_user_state) {
  runtime_fixture on;
  on.open("a", {{"user:k", 1}, {"app:k", 1}});
  on.open("b");
  const auto other = on.open("a", {{"user:k", 2}}, "ben");
  BOOST_TEST(on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(!on.sessions().remove_user("press", "ann").value());
  BOOST_TEST(on.sessions().list({"press", "ann"}).value().sessions.empty());
  BOOST_TEST(on.user_state() == json::object());
  BOOST_TEST(on.app_state() == json({{"k", 1}}));
  BOOST_TEST(on.state(other) == json({{"user:k", 2}, {"app:k", 1}}));
  BOOST_TEST(on.state(on.open("a")) == json({{"app:k", 1}}));
}

BOOST_AUTO_TEST_CASE(remove_user_behind_a_re_create_is_answered) {
  runtime_fixture on;
  for (int round = 0; round < 200; ++round) {
    const auto key = on.open("s", {{"user:k", 1}});
    answers<bool> removed;
    answers<session> created;
    on.sessions().remove(key).then(removed.next());
    on.sessions().create({"press", "ann", "s"}).then(created.next());
    on.sessions().remove_user("press", "ann").then(removed.next());
    for (const auto& each : removed.await())
      BOOST_TEST(each.value());
    BOOST_TEST(code_of(created.await().front()) == "ok");
    BOOST_TEST(on.user_state() == json::object());
    BOOST_TEST(code_of(on.sessions().get(key).get()) == "not_found");
  }
}

BOOST_AUTO_TEST_CASE(racing_with_remove_user_every_call_is_answered) {
  runtime_fixture on;
  for (int round = 0; round < 60; ++round) {
    on_threads(8, [&](std::size_t index) {
      const session_key key{"press", "ann", "s" + std::to_string(index % 3)};
      for (int count = 0; count < 10; ++count) {
        static_cast<void>(on.sessions().create(key, {{"user:k", 1}}).get());
        static_cast<void>(
          on.sessions()
            .append_event(key, operate({operation_on("user:n", "add", 1)}))
            .get());
        static_cast<void>(on.sessions().get(key).get());
        if (index == 0)
          static_cast<void>(on.sessions().remove_user("press", "ann").get());
        if (index == 1)
          static_cast<void>(on.sessions().remove(key).get());
      }
    });
    static_cast<void>(on.sessions().remove_user("press", "ann").get());
    BOOST_TEST(on.user_state() == json::object());
  }
}

// -- the live handle ----

BOOST_AUTO_TEST_CASE(copies_of_a_handle_are_views_of_one_owner) {
  runtime_fixture on;
  const auto key = on.open();
  auto one = on.sessions().state(key);
  auto other = one;
  BOOST_TEST(code_of(one.set("k", 1).get()) == "ok");
  BOOST_TEST(code_of(one.set("user:k", "u").get()) == "ok");
  BOOST_TEST(text_of(other.find("k").value()) == "1");
  BOOST_TEST(other.snapshot().value().all()
             == json({{"k", 1}, {"user:k", "u"}}));
  BOOST_TEST(code_of(other.erase("k").get()) == "ok");
  BOOST_TEST(text_of(one.find("k").value()) == "absent");
  const auto events = on.events(key);
  BOOST_TEST(events.size() == 3U);
  for (const auto& said : events)
    BOOST_TEST(said->author == "system");
}

BOOST_AUTO_TEST_CASE(a_handle_has_typed_operations_and_reads) {
  runtime_fixture on;
  const auto key = on.open();
  const auto state = on.sessions().state(key);
  BOOST_TEST(code_of(state.add("app:n", 2).get()) == "ok");
  BOOST_TEST(code_of(state.append("list", "a").get()) == "ok");
  BOOST_TEST(code_of(state.add_to_set("set", {"x", "x"}).get()) == "ok");
  BOOST_TEST(code_of(state.min("low", 3).get()) == "ok");
  BOOST_TEST(code_of(state.max("high", 3).get()) == "ok");
  BOOST_TEST(code_of(state.merge("map", {{"k", 1}}).get()) == "ok");
  BOOST_TEST(code_of(state.compare_and_set("lock", nullptr, "me").get())
             == "ok");
  BOOST_TEST(code_of(state.compare_and_set("lock", nullptr, "you").get())
             == "conflict");
  BOOST_TEST(code_of(state.add("list", 1).get()) == "type_error");
  BOOST_TEST(code_of(state.add("n", "one").get()) == "invalid_argument");
  BOOST_TEST(on.state(key)
             == json::parse(R"({"app:n": 2, "list": ["a"], "set": ["x"],
                  "low": 3, "high": 3, "map": {"k": 1}, "lock": "me"})"));

  BOOST_TEST(state.get<int>("app:n").value() == 2);
  BOOST_TEST(state.get("absent", 7).value() == 7);
  BOOST_TEST(state.get("absent", "none").value() == "none");
  BOOST_TEST(state.get("map").value() == json({{"k", 1}}));
  BOOST_TEST(code_of(state.get<int>("absent").get()) == "not_found");
  BOOST_TEST(code_of(state.get<int>("lock").get()) == "type_error");
  BOOST_TEST(code_of(state.get("lock", 1).get()) == "type_error");
}

BOOST_AUTO_TEST_CASE(a_write_returns_the_event_with_the_new_value) {
  runtime_fixture on;
  const auto state = on.sessions().state(on.open("s", {{"n", 40}}));
  const auto stored = state.add("n", 2).value();
  BOOST_TEST(stored->actions.state_delta.to_json() == json({{"n", 42}}));
  BOOST_TEST(stored->author == "system");
}

BOOST_AUTO_TEST_CASE(a_write_has_id_condition_and_author) {
  runtime_fixture on;
  const auto key = on.open();
  const auto state = on.sessions().state(key);
  for (int count = 0; count < 3; ++count)
    BOOST_TEST(code_of(state.add("n", 1, write_options("once")).get()) == "ok");
  BOOST_TEST(state.get<int>("n").value() == 1);
  BOOST_TEST(code_of(state.set("n", 5, write_options("", 0)).get())
             == "conflict");
  BOOST_TEST(code_of(state.set("n", 5, write_options("", 1)).get()) == "ok");
  write_options by_user;
  by_user.author = "user";
  BOOST_TEST(state.erase("n", by_user).value()->author == "user");
}

BOOST_AUTO_TEST_CASE(concurrent_adds_of_a_handle_all_count) {
  runtime_fixture on;
  const auto state = on.sessions().state(on.open());
  on_threads(8, [&](std::size_t) {
    for (int count = 0; count < 50; ++count)
      state.add("user:n", 1).value();
  });
  BOOST_TEST(state.get<int>("user:n").value() == 400);
}

BOOST_AUTO_TEST_CASE(a_coroutine_awaits_a_handle) {
  runtime_fixture on;
  const auto key = on.open();
  tally ended;
  int seen = 0;
  start(
    [](live_state state, int& told) -> task<> {
      auto added = co_await state.add("n", 3);
      added.value();
      auto found = co_await state.get("n", 0);
      told = found.value();
    }(on.sessions().state(key), seen),
    [&](const std::exception_ptr&) { ended.add(); });
  ended.await(1);
  BOOST_TEST(seen == 3);
}

// Such a write would be dropped without an error.
BOOST_AUTO_TEST_CASE(a_handle_refuses_writes_without_effect) {
  runtime_fixture on;
  const auto key = on.open();
  const auto state = on.sessions().state(key);
  for (const auto* bad : {"temp:x", "app:app:x", "user:app:x", "app:temp:x"}) {
    BOOST_TEST(code_of(state.set(bad, 1).get()) == "invalid_argument");
    BOOST_TEST(code_of(state.add(bad, 1).get()) == "invalid_argument");
  }
  BOOST_TEST(code_of(state.erase("temp:x").get()) == "invalid_argument");
  BOOST_TEST(reason_of(state.set("temp:x", 1).get()).find("only during a run")
             != std::string::npos);
  BOOST_TEST(on.fetch(key).revision() == 0U);
}

// Older versions, and imports, have stored such keys.
BOOST_AUTO_TEST_CASE(a_stored_key_with_two_prefixes_is_read_and_erased) {
  runtime_fixture on;
  const auto key = on.open("s", {{"app:user:x", 1}});
  const auto state = on.sessions().state(key);
  BOOST_TEST(state.get<int>("app:user:x").value() == 1);
  BOOST_TEST(code_of(state.set("app:user:x", 2).get()) == "invalid_argument");
  BOOST_TEST(code_of(state.erase("app:user:x").get()) == "ok");
  BOOST_TEST(on.state(key) == json::object());
}

// -- get or create ----

BOOST_AUTO_TEST_CASE(a_missing_session_is_created_and_an_existing_one_kept) {
  runtime_fixture on;
  const session_key key{"press", "ann", "s"};
  auto& sessions = on.sessions();
  const auto made = sessions.get_or_create(key, {{"topic", "owls"}}).value();
  BOOST_TEST(made.state().all() == json({{"topic", "owls"}}));
  sessions.append_event(key, change({{"n", 1}})).value();
  const auto kept = sessions.get_or_create(key, {{"topic", "mice"}}).value();
  BOOST_TEST(kept.state().all() == json({{"topic", "owls"}, {"n", 1}}));
  BOOST_TEST(kept.events().size() == 1U);
  // The same without a blocked thread.
  answers<session> called;
  for (int count = 0; count < 2; ++count)
    sessions.get_or_create({"press", "ann", "later"}).then(called.next());
  for (const auto& each : called.await())
    BOOST_TEST(code_of(each) == "ok");
  // A blank id is a new one each time.
  const auto first = sessions.get_or_create({"press", "ann"}).value();
  const auto second = sessions.get_or_create({"press", "ann", " "}).value();
  BOOST_TEST(first.key().id != second.key().id);
  BOOST_TEST(code_of(sessions.get_or_create({"", "ann", "s"}).get())
             == "invalid_argument");
  BOOST_TEST(
    code_of(sessions.get_or_create({"press", "ann", "t"}, {{"", 1}}).get())
    == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(racing_callers_get_one_session) {
  runtime_fixture on;
  for (int round = 0; round < 50; ++round) {
    const session_key key{"press", "ann", std::to_string(round)};
    std::vector<json> seen(4);
    on_threads(4, [&](std::size_t index) {
      seen[index] = on.sessions()
                      .get_or_create(key, {{"by", index}})
                      .value()
                      .state()
                      .get("by");
    });
    for (const auto& each : seen)
      BOOST_TEST(each == seen.front());
  }
}

// -- three forms ----

BOOST_AUTO_TEST_CASE(every_call_can_be_awaited) {
  runtime_fixture on;
  std::vector<std::string> codes;
  tally ended;
  start(call_all(on.sessions(), codes),
        [&](const std::exception_ptr&) { ended.add(); });
  ended.await(1);
  BOOST_TEST(codes == std::vector<std::string>(9, "ok"),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_coroutine_agent_can_await_the_session_service) {
  runtime_fixture on;
  const auto key = on.open();
  std::vector<std::string> codes;
  const auto caller = custom("caller", [&](invocation_context&) -> agent_run {
    co_await call_all(on.sessions(), codes);
  });
  // The last call removes the user of the run, which ends the run itself.
  static_cast<void>(on.runtime.run(caller, key, "go").wait().get());
  BOOST_TEST(codes == std::vector<std::string>(9, "ok"),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(blocking_calls_on_threads_of_the_runtime_are_refused) {
  runtime_fixture on;
  const auto key = on.open();
  std::vector<std::string> codes;
  tally ended;
  on.sessions().get(key).then([&](const result<session>&) {
    codes = codes_of_all_calls(on, key);
    codes.push_back(code_of(on.sessions().create({"press", "ann"}).get()));
    codes.push_back(code_of(on.sessions().list({"press"}).get()));
    codes.push_back(code_of(on.sessions().remove(key).get()));
    codes.push_back(code_of(on.sessions().remove_user("press", "ann").get()));
    codes.push_back(code_of(on.sessions().user_state("press", "ann").get()));
    codes.push_back(code_of(on.sessions().app_state("press").get()));
    ended.add();
  });
  ended.await(1);
  BOOST_TEST(codes == std::vector<std::string>(13, "would_deadlock"),
             boost::test_tools::per_element());
  BOOST_TEST(on.state(key) == json::object());
}

BOOST_AUTO_TEST_CASE(blocking_calls_in_a_coroutine_agent_are_refused) {
  runtime_fixture on;
  const auto key = on.open();
  std::string code;
  const auto blocked = custom("blocked", [&](invocation_context&) -> agent_run {
    code = code_of(on.sessions().get(key).get());
    co_return;
  });
  BOOST_TEST(code_of(on.runtime.run(blocked, key, "go").wait().get()) == "ok");
  BOOST_TEST(code == "would_deadlock");
}

BOOST_AUTO_TEST_SUITE_END()
