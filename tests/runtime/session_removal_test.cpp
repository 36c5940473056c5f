// Removing sessions and users, also beside other calls on them.

#include "troupe/runtime/runtime.hpp"

#include "session_calls.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(session_removal, *boost::unit_test::timeout(120))

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

BOOST_AUTO_TEST_SUITE_END()
