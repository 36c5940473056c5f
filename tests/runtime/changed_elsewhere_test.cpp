// Sessions that are in memory while another process changes them.

#include "locations.hpp"
#include "long_session.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(changed_elsewhere, *boost::unit_test::timeout(120))

namespace {

/// A session of the events "1" to "COUNT", which one runtime has in memory.
struct fixture {
  explicit fixture(const std::string& kind, std::size_t count = 40)
    : at(kind),
      one(options()),
      other(options()) {
    other.open("s", {{"n", 0}});
    add(other, 1, count);
    BOOST_TEST_REQUIRE(newest() == std::to_string(count));
  }

  runtime_options options() const {
    auto chosen = at.options();
    chosen.events_kept = 8;
    return chosen;
  }

  static event counted(std::size_t number) {
    auto said = numbered(number);
    said.actions.state_delta = delta::from_json({{"n", number}}).value();
    return said;
  }

  static void add(runtime_fixture& on, std::size_t first, std::size_t last) {
    for (auto number = first; number <= last; ++number)
      BOOST_TEST_REQUIRE(on.append(here, counted(number)) == "ok");
  }

  std::string newest() {
    const auto seen
      = one.sessions().get(here, {.num_recent_events = 1}).value();
    return seen.events().empty() ? "none" : seen.events().back()->text();
  }

  std::size_t read() { return at.place().script->events_read; }

  location_of at;
  runtime_fixture one;
  runtime_fixture other;
};

std::vector<std::string> words(std::size_t first, std::size_t last) {
  std::vector<std::string> all;
  for (auto number = first; number <= last; ++number)
    all.push_back(std::to_string(number));
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(only_later_events_are_loaded) {
  fixture with("store");
  for (std::size_t number = 41; number <= 60; ++number) {
    with.add(with.other, number, number);
    const auto before = with.read();
    BOOST_TEST(with.newest() == std::to_string(number));
    BOOST_TEST(with.read() - before == 2U); // The known one, and the new one.
    BOOST_TEST(with.one.state(here)["n"] == number);
  }
  BOOST_TEST(with.one.texts(here) == words(1, 60));
}

BOOST_DATA_TEST_CASE(more_later_events_than_are_kept_are_all_there,
                     data::make(shared_kinds) * data::make({7U, 8U, 9U, 30U}),
                     kind,
                     count) {
  fixture with(kind);
  with.add(with.other, 41, 40 + count);
  BOOST_TEST(with.newest() == std::to_string(40 + count));
  BOOST_TEST(with.one.texts(here) == words(1, 40 + count));
  for (const std::size_t known : {1U, 40U, 41U, 40U + count})
    BOOST_TEST(with.one.append(here, fixture::counted(known)) == "ok");
  BOOST_TEST(with.one.fetch(here).revision() == 40U + count);
}

BOOST_DATA_TEST_CASE(an_event_of_another_process_takes_effect_once,
                     data::make(shared_kinds),
                     kind) {
  fixture with(kind);
  for (std::size_t number = 41; number <= 45; ++number) {
    with.add(with.other, number, number);
    BOOST_TEST(with.newest() == std::to_string(number));
    with.add(with.one, number, number);
  }
  BOOST_TEST(with.one.texts(here) == words(1, 45));
}

BOOST_DATA_TEST_CASE(both_append_in_turn, data::make(shared_kinds), kind) {
  fixture with(kind);
  for (std::size_t number = 41; number <= 80; ++number)
    with.add(number % 2 == 0 ? with.one : with.other, number, number);
  BOOST_TEST(with.one.texts(here) == words(1, 80));
  BOOST_TEST(with.other.texts(here) == words(1, 80));
}

// The new session has events with the ids of the old one.
BOOST_DATA_TEST_CASE(a_session_that_was_created_again_is_loaded_whole,
                     data::make(shared_kinds) * data::make({39U, 40U, 45U}),
                     kind,
                     count) {
  fixture with(kind);
  BOOST_TEST(with.other.sessions().remove(here).value());
  with.other.open("s", {{"other", true}});
  for (std::size_t number = 1; number <= count; ++number) {
    auto said = numbered(number);
    if (number != 40)
      said.content = content("user", {part("new")});
    BOOST_TEST_REQUIRE(with.other.append(here, std::move(said)) == "ok");
  }
  BOOST_TEST(with.one.state(here) == (json{{"other", true}}));
  const auto seen = with.one.texts(here);
  BOOST_TEST_REQUIRE(seen.size() == count);
  for (std::size_t number = 1; number <= count; ++number)
    BOOST_TEST(seen[number - 1] == (number == 40 ? "40" : "new"));
}

BOOST_DATA_TEST_CASE(a_session_that_was_trimmed_elsewhere_forgets_events,
                     data::make(shared_kinds),
                     kind) {
  fixture with(kind);
  BOOST_TEST(with.other.sessions().trim(here, 38).value().first_revision
             == 38U);
  with.add(with.other, 41, 42);
  BOOST_TEST(with.newest() == "42");
  BOOST_TEST(with.one.texts(here) == words(39, 42));
  BOOST_TEST(with.one.fetch(here).first_revision() == 38U);
}

BOOST_AUTO_TEST_CASE(a_follower_loads_each_event_of_another_process_once) {
  fixture with("store");
  auto news = with.one.sessions().follow(here, {.from = 40});
  const auto before = with.read();
  for (std::size_t number = 41; number <= 60; ++number) {
    answers<event_ptr> taken;
    news.next().then(taken.next());
    with.add(with.other, number, number);
    const auto next = taken.await()[0];
    BOOST_TEST_REQUIRE(next.has_value());
    BOOST_TEST((*next)->text() == std::to_string(number));
  }
  BOOST_TEST(with.read() - before <= 3 * 20U);
}

// Followers are not shown `user:` and `app:`, so these may stay as they are.
BOOST_AUTO_TEST_CASE(user_and_app_are_loaded_when_they_are_read) {
  fixture with("store");
  auto news = with.one.sessions().follow(here, {.from = 40});
  const auto loads
    = [&with] { return with.at.place().script->scope_loads.count(); };
  const auto before = loads();
  for (std::size_t number = 41; number <= 60; ++number) {
    answers<event_ptr> taken;
    news.next().then(taken.next());
    auto said = numbered(number);
    said.actions.state_delta
      = delta::from_json({{"user:n", number}, {"app:n", number}}).value();
    BOOST_TEST_REQUIRE(with.other.append(here, std::move(said)) == "ok");
    BOOST_TEST_REQUIRE(taken.await()[0].has_value());
  }
  BOOST_TEST(loads() == before);
  BOOST_TEST(with.one.state(here)
             == (json{{"n", 40}, {"user:n", 60}, {"app:n", 60}}));
  BOOST_TEST(loads() == before + 2);
}

// The session answers the retry from its own events. The answer is based on the
// user, too, which is stale, and the session sends it no letter.
BOOST_AUTO_TEST_CASE(a_retry_loads_the_user_that_its_answer_depends_on) {
  fixture with("store");
  auto said = numbered(41);
  auto changed = json::object();
  changed["user:n"] = 1;
  said.actions.state_delta = delta::from_json(changed).value();
  BOOST_TEST_REQUIRE(with.one.append(here, said) == "ok");
  BOOST_TEST_REQUIRE(with.other.append(here, numbered(42)) == "ok");
  auto elsewhere = numbered(1);
  elsewhere.actions.state_delta = said.actions.state_delta;
  with.other.open("t");
  BOOST_TEST_REQUIRE(
    with.other.append({here.app, here.user, "t"}, std::move(elsewhere))
    == "ok");
  BOOST_TEST(with.newest() == "42");
  BOOST_TEST(with.one.append(here, said) == "ok");
  BOOST_TEST(with.one.state(here)["user:n"] == 1);
}

BOOST_AUTO_TEST_SUITE_END()
