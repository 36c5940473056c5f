// The public calls of sessions: keys, creating, reading, and the three forms of
// every call.

#include "troupe/runtime/runtime.hpp"

#include "session_calls.hpp"
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
