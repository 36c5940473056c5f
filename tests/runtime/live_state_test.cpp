// The handle to the state of a live session.

#include "troupe/runtime/runtime.hpp"

#include "runtime_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <exception>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(live_handles, *boost::unit_test::timeout(120))

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

BOOST_AUTO_TEST_SUITE_END()
