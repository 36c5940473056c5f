// Sessions as they were at an earlier revision.

#include "troupe/runtime/session_writer.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../stores/temporary_folder.hpp"
#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(revisions)

namespace {

const session_key key("press", "ann", "s");

result<session> at(runtime_fixture& on, std::uint64_t revision) {
  return on.sessions().get(key, {.at = revision}).get();
}

json state_at(runtime_fixture& on, std::uint64_t revision) {
  return at(on, revision).value().state().all();
}

event timed(json changes, std::chrono::seconds time) {
  auto said = change(std::move(changes));
  said.timestamp = timestamp(time);
  return said;
}

} // namespace

BOOST_DATA_TEST_CASE(a_session_is_read_as_it_was,
                     data::make({false, true}),
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  create_request wanted(key);
  wanted.state = json{{"n", 10}, {"gone", 1}};
  wanted.last_update_time = timestamp(5s);
  on.sessions().create(wanted).value();
  on.sessions().append_event(key, timed({{"gone", nullptr}}, 9s)).value();
  auto typed = timed({{"user:theme", "dark"}}, 7s);
  typed.actions.state_delta.record("n", operation_kind::add, value(5)).value();
  on.sessions().append_event(key, std::move(typed)).value();
  on.sessions().append_event(key, timed({{"gone", 2}}, 11s)).value();

  // The keys of the user are those of now.
  BOOST_TEST(state_at(on, 0)
             == json({{"n", 10}, {"gone", 1}, {"user:theme", "dark"}}));
  BOOST_TEST(state_at(on, 1) == json({{"n", 10}, {"user:theme", "dark"}}));
  BOOST_TEST(state_at(on, 2) == json({{"n", 15}, {"user:theme", "dark"}}));
  BOOST_TEST(state_at(on, 3)
             == json({{"n", 15}, {"gone", 2}, {"user:theme", "dark"}}));
  const auto times = {5s, 9s, 9s, 11s};
  for (std::uint64_t revision = 0; const auto time : times) {
    const auto past = at(on, revision).value();
    BOOST_TEST(past.revision() == revision);
    BOOST_TEST(past.events().size() == revision);
    BOOST_TEST((past.last_update_time() == timestamp(time)));
    BOOST_TEST(past.is_earlier() == (revision < 3));
    BOOST_TEST(to_json(past).contains("isEarlier") == (revision < 3));
    ++revision;
  }
  const auto beyond = at(on, 4);
  BOOST_TEST(code_of(beyond) == "not_found");
  BOOST_TEST(beyond.error().message()
             == "session press/ann/s has no revision 4; its newest one is 3");
}

// Another session writes in between, and so does a call without a session.
BOOST_AUTO_TEST_CASE(user_and_app_are_as_they_were_in_a_file) {
  const temporary_folder folder;
  const auto file = "sqlite:" + (folder.path() / "s.db").string();
  const auto expect_all = [](runtime_fixture& on) {
    BOOST_TEST(state_at(on, 0) == json({{"app:n", 1}}));
    BOOST_TEST(state_at(on, 1) == json({{"app:n", 1}, {"user:n", 1}}));
    BOOST_TEST(state_at(on, 2)
               == json({{"app:n", 3}, {"user:n", 2}, {"user:x", true}}));
    BOOST_TEST(!at(on, 1).value().shared_state_is_of_now());
    BOOST_TEST(to_json(at(on, 1).value()).at("sharedStateIsOfNow") == false);
    BOOST_TEST(at(on, 3).value().shared_state_is_of_now());
    BOOST_TEST(state_at(on, 3) == json({{"app:n", 4}, {"user:n", 2}}));
  };
  {
    runtime_fixture on({.store = file});
    auto& sessions = on.sessions();
    sessions.state_of_app(key.app)
      .set("app:n", 1, shared_write_options("w"))
      .value();
    on.open("s");
    on.open("other");
    const session_key other{key.app, key.user, "other"};
    sessions.append_event(key, timed({{"user:n", 1}}, 5s)).value();
    sessions.append_event(other, timed({{"user:x", true}, {"app:n", 2}}, 5s))
      .value();
    sessions.append_event(key, timed({{"user:n", 2}, {"app:n", 3}}, 6s))
      .value();
    sessions.append_event(other, timed({{"user:x", nullptr}}, 5s)).value();
    sessions.append_event(key, timed({{"app:n", 4}}, 7s)).value();
    expect_all(on);
  }
  runtime_fixture again({.store = file});
  expect_all(again);
}

BOOST_DATA_TEST_CASE(options_choose_among_the_events_up_to_a_revision,
                     data::make({false, true}),
                     over_a_store) {
  const staged_place place;
  auto options = over_a_store ? place.options() : runtime_options();
  options.events_kept = 1; // The store has to be asked.
  runtime_fixture on(std::move(options));
  on.open("s");
  for (int number = 1; number <= 5; ++number)
    on.sessions()
      .append_event(key, timed({{"n", number}}, std::chrono::seconds(number)))
      .value();
  const auto newest
    = on.sessions().get(key, {.num_recent_events = 2, .at = 4}).value();
  BOOST_TEST(newest.events().size() == 2U);
  BOOST_TEST((newest.events().back()->timestamp == timestamp(4s)));
  BOOST_TEST(newest.state().get<int>("n") == 4);
  const auto late
    = on.sessions().get(key, {.after = timestamp(3s), .at = 4}).value();
  BOOST_TEST(late.events().size() == 2U);
  const auto none
    = on.sessions().get(key, {.num_recent_events = 0, .at = 4}).value();
  BOOST_TEST(none.events().empty());
}

// Also through the states that memory keeps in between, and with a past that
// came in one piece.
BOOST_DATA_TEST_CASE(a_long_session_is_read_as_it_was,
                     data::make({false, true}) * data::make({false, true}),
                     over_a_store,
                     in_one_piece) {
  constexpr int count = 2'500;
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  create_request wanted(key);
  wanted.state = json{{"first", 1}};
  std::vector<event> past;
  for (int number = 1; number <= count; ++number)
    past.push_back(change({{"k" + std::to_string(number % 5), number}}));
  if (in_one_piece) {
    wanted.events = std::move(past);
    on.sessions().create(wanted).value();
  } else {
    on.sessions().create(wanted).value();
    auto writer = on.sessions().writer(key);
    answers<event_ptr> answered;
    for (auto& said : past)
      writer.append(std::move(said)).then(answered.next());
    answered.await();
  }
  // Twice, since the first time may keep states.
  for (int turn = 0; turn < 2; ++turn)
    for (const int revision : {0, 1, 4, 511, 512, 1'300, 2'048, 2'499, 2'500}) {
      json expected = {{"first", 1}};
      for (int number = std::max(1, revision - 4); number <= revision; ++number)
        expected["k" + std::to_string(number % 5)] = number;
      BOOST_TEST(state_at(on, static_cast<std::uint64_t>(revision))
                 == expected);
    }
}

// Each read of a walk back starts from a state that an earlier read has kept.
BOOST_AUTO_TEST_CASE(a_walk_back_replays_little) {
  constexpr std::uint64_t count = 20'000;
  runtime_fixture on;
  create_request wanted(key);
  for (std::uint64_t number = 1; number <= count; ++number)
    wanted.events.push_back(change({{"n", number}}));
  on.sessions().create(std::move(wanted)).value();
  for (auto revision = count; revision > count - 3'000; --revision)
    BOOST_REQUIRE(at(on, revision).value().state().get<std::uint64_t>("n")
                  == revision);
}

BOOST_AUTO_TEST_CASE(a_store_that_fails_is_told) {
  const staged_place place;
  runtime_fixture on(place.options());
  on.open("s");
  on.sessions().append_event(key, change({{"n", 1}})).value();
  place.script->fail_loads(true);
  BOOST_TEST(code_of(at(on, 0)) == "store_failed");
  place.script->fail_loads(false);
  BOOST_TEST(code_of(at(on, 0)) == "ok");
}

BOOST_AUTO_TEST_CASE(an_idle_session_keeps_its_past) {
  runtime_options options;
  options.live_sessions_max = 1;
  runtime_fixture on(std::move(options));
  on.sessions().create(create_request(key), {{"n", 0}}).value();
  on.sessions().append_event(key, change({{"n", 1}})).value();
  for (int number = 0; number < 20; ++number)
    on.sessions().create({"press", "bob", std::to_string(number)}).value();
  BOOST_TEST(state_at(on, 0) == json({{"n", 0}}));
  BOOST_TEST(state_at(on, 1) == json({{"n", 1}}));
}

BOOST_DATA_TEST_CASE(a_session_that_is_not_there_has_no_past,
                     data::make({false, true}),
                     over_a_store) {
  const staged_place place;
  runtime_fixture on(over_a_store ? place.options() : runtime_options());
  BOOST_TEST(code_of(at(on, 0)) == "not_found");
  on.open("s");
  BOOST_TEST(code_of(at(on, 0)) == "ok");
  on.sessions().remove(key).value();
  BOOST_TEST(code_of(at(on, 0)) == "not_found");
}

// Another program removes the session, or makes it again, between the two steps
// of the read: then it is not found, and never another one.
BOOST_DATA_TEST_CASE(a_session_that_is_made_again_is_not_mixed_up,
                     data::make({false, true}),
                     made_again) {
  class replaced_store final : public forwarding_store {
  public:
    using forwarding_store::forwarding_store;

    std::function<void()> before_past;

    result<std::optional<stored_session>>
    load_session_at(const session_key& wanted,
                    std::uint64_t revision,
                    std::size_t events_max) override {
      before_past();
      return forwarding_store::load_session_at(wanted, revision, events_max);
    }
  };

  const auto data = make_memory_data();
  runtime_options options;
  const auto kept = std::make_shared<replaced_store>(make_memory_store(data));
  options.store = kept;
  runtime_fixture on(std::move(options));
  on.open("s", {{"n", 0}});
  on.sessions().append_event(key, change({{"n", 1}})).value();
  const auto other = make_memory_store(data);
  bool is_first = true;
  kept->before_past = [&] {
    if (!std::exchange(is_first, false))
      return;
    store_change removed;
    removed.kind = change_kind::remove;
    removed.owner = {key.app, key.user, key.id};
    BOOST_TEST(other->commit(std::array{removed}).value().moved.empty());
    if (!made_again)
      return;
    auto created = removed;
    created.kind = change_kind::create;
    created.event = std::make_shared<const event>(change({{"n", 5}}));
    created.session_revision = 0;
    auto said = created;
    said.kind = change_kind::append;
    auto another = change({{"n", 6}});
    another.id = "another";
    said.event = std::make_shared<const event>(std::move(another));
    said.session_revision = 1;
    BOOST_TEST(other->commit(std::array{created, said}).value().moved.empty());
  };
  const auto past = at(on, 0);
  BOOST_TEST(code_of(past) == (made_again ? "ok" : "not_found"));
  if (made_again)
    BOOST_TEST(past->state().get<int>("n") == 5);
}

// A store of its own that keeps no past says so.
BOOST_AUTO_TEST_CASE(a_store_without_a_past_refuses) {
  class without_past final : public forwarding_store {
  public:
    using forwarding_store::forwarding_store;

    result<std::optional<stored_session>>
    load_session_at(const session_key& wanted,
                    std::uint64_t revision,
                    std::size_t events_max) override {
      return store::load_session_at(wanted, revision, events_max);
    }
  };

  runtime_options options;
  options.store = std::make_shared<without_past>(make_memory_store());
  runtime_fixture on(std::move(options));
  on.open("s");
  on.sessions().append_event(key, change({{"n", 1}})).value();
  const auto refused = at(on, 0);
  BOOST_TEST(code_of(refused) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
