// Commits that lose, because another process has changed the user or the app
// first. Their session goes back to what the store has, and decides its events
// again.

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(lost_commits, *boost::unit_test::timeout(120))

namespace {

/// Two processes with a session each, of one user. Both have appended to it, so
/// each knows of the other.
struct fixture {
  explicit fixture(std::size_t events_kept = 64)
    : one(options(events_kept)),
      other(place.beside()),
      there(other.open("t")) {
    one.open();
    BOOST_TEST(one.append(here, counting("a-1")) == "ok");
    BOOST_TEST(other.append(there, counting()) == "ok");
    BOOST_TEST(one.append(here, counting("a-2")) == "ok");
  }

  runtime_options options(std::size_t events_kept) const {
    auto chosen = place.options();
    chosen.events_kept = events_kept;
    return chosen;
  }

  /// Appends events "e-1" to "e-COUNT" at once. `meanwhile` runs when the first
  /// of them are about to be committed. Returns the codes of the answers.
  std::vector<std::string> append(std::size_t count,
                                  const std::function<void()>& meanwhile) {
    auto& script = *place.script;
    script.hold();
    const auto before = script.arrived.count();
    answers<event_ptr> appended;
    for (std::size_t number = 1; number <= count; ++number)
      one.sessions()
        .append_event(here, counting(fmt::format("e-{}", number)))
        .then(appended.next());
    script.arrived.await(before + 1);
    meanwhile();
    script.release();
    std::vector<std::string> codes;
    for (const auto& answer : appended.await())
      codes.push_back(code_of(answer));
    return codes;
  }

  std::size_t loads() const { return place.script->session_loads.count(); }

  staged_place place;
  runtime_fixture one;
  runtime_fixture other;
  session_key there;
};

std::vector<std::string> all_ok(std::size_t count) {
  return std::vector<std::string>(count, "ok");
}

} // namespace

BOOST_DATA_TEST_CASE(a_session_goes_back_without_a_load,
                     data::make({1U, 8U, 64U}) * data::make({1U, 5U, 40U}),
                     events_kept,
                     count) {
  fixture with(events_kept);
  const auto loads = with.loads();
  const auto codes = with.append(count, [&] {
    BOOST_TEST(with.other.append(with.there, counting()) == "ok");
  });
  BOOST_TEST(codes == all_ok(count));
  BOOST_TEST(with.loads() == loads);
  const auto n = static_cast<int>(count);
  const auto expected
    = json({{"n", n + 2}, {"user:n", n + 4}, {"app:n", n + 4}});
  for (auto* each : {&with.one, &with.other}) {
    const auto seen = each->fetch(here);
    BOOST_TEST(seen.revision() == count + 2);
    BOOST_TEST(seen.events().size() == count + 2);
    check_source_order(seen.events());
    BOOST_TEST(each->state(here) == expected);
  }
  BOOST_TEST(with.place.damage() == std::vector<std::string>());
}

// The events appended before the events that were taken back, and these events,
// still take effect once.
BOOST_AUTO_TEST_CASE(ids_are_known_after_going_back) {
  fixture with;
  with.append(
    5, [&] { BOOST_TEST(with.other.append(with.there, counting()) == "ok"); });
  for (const auto* id : {"a-1", "a-2", "e-1", "e-5"})
    BOOST_TEST(with.one.append(here, counting(id)) == "ok");
  BOOST_TEST(with.one.fetch(here).revision() == 7U);
}

// The other process has appended the same event first, so the letter joins that
// one. Then the answer is lost a second time.
BOOST_AUTO_TEST_CASE(an_event_of_another_process_stays_known_after_losses) {
  fixture with;
  auto& script = *with.place.script;
  std::size_t looks = 0;
  // Before each look but the first ones, the app moves again.
  std::atomic<bool> is_moving = false;
  script.on_look = [&] {
    if (is_moving && ++looks <= 3)
      BOOST_TEST(with.other.append(with.there, counting()) == "ok");
  };
  const auto codes = with.append(1, [&] {
    BOOST_TEST(with.other.append(here, counting("e-1")) == "ok");
    is_moving = true;
  });
  BOOST_TEST(codes == all_ok(1));
  is_moving = false;
  BOOST_TEST(with.one.append(here, counting("e-1")) == "ok");
  BOOST_TEST(ids_of(with.one.fetch(here).events())
             == std::vector<std::string>({"a-1", "a-2", "e-1"}));
}

BOOST_AUTO_TEST_CASE(a_session_loads_if_it_has_moved_too) {
  fixture with;
  const auto loads = with.loads();
  const auto codes = with.append(
    5, [&] { BOOST_TEST(with.other.append(here, counting("o-1")) == "ok"); });
  BOOST_TEST(codes == all_ok(5));
  BOOST_TEST(with.loads() > loads);
  BOOST_TEST(ids_of(with.one.fetch(here).events())
             == std::vector<std::string>(
               {"a-1", "a-2", "o-1", "e-1", "e-2", "e-3", "e-4", "e-5"}));
  BOOST_TEST(with.one.state(here)
             == json({{"n", 8}, {"user:n", 9}, {"app:n", 9}}));
}

// The load that fails would have shown the event of the other process.
BOOST_AUTO_TEST_CASE(a_session_does_not_go_back_after_a_failed_load) {
  fixture with;
  const auto codes = with.append(3, [&] {
    BOOST_TEST(with.other.append(here, counting("o-1")) == "ok");
    with.place.script->fail_loads(true);
  });
  BOOST_TEST(codes == std::vector<std::string>(3, "store_failed"));
  with.place.script->fail_loads(false);
  BOOST_TEST(with.one.append(here, counting("e-9")) == "ok");
  BOOST_TEST(ids_of(with.one.fetch(here).events())
             == std::vector<std::string>({"a-1", "a-2", "o-1", "e-9"}));
  BOOST_TEST(with.one.state(here)
             == json({{"n", 4}, {"user:n", 5}, {"app:n", 5}}));
}

// The outcome of the commit is not known, so the memory of the session is not.
BOOST_AUTO_TEST_CASE(a_session_loads_after_a_failed_commit) {
  fixture with;
  const auto loads = with.loads();
  with.place.script->next_commits({store_script::step::fail_anyway});
  const auto codes = with.append(1, [] {});
  BOOST_TEST(codes == std::vector<std::string>({"store_failed"}));
  BOOST_TEST(with.one.fetch(here).revision() == 3U);
  BOOST_TEST(with.loads() == loads + 1);
}

// Operations that the app refuses the second time leave nothing behind.
BOOST_AUTO_TEST_CASE(events_that_are_refused_after_going_back_leave_nothing) {
  fixture with;
  auto& script = *with.place.script;
  script.hold();
  const auto before = script.arrived.count();
  answers<event_ptr> appended;
  const auto expecting = [](int n) {
    auto moved = operation_on("app:n", "cas", n + 1);
    moved["expected"] = n;
    return operate({operation_on("n", "add", 100), std::move(moved)});
  };
  for (const int n : {3, 4})
    with.one.sessions().append_event(here, expecting(n)).then(appended.next());
  script.arrived.await(before + 1);
  BOOST_TEST(with.other.append(with.there, counting()) == "ok");
  script.release();
  const auto answered = appended.await();
  BOOST_TEST(code_of(answered[0]) == "conflict");
  // The other process has written what the second one expects.
  BOOST_TEST(code_of(answered[1]) == "ok");
  BOOST_TEST(with.one.state(here)
             == json({{"n", 102}, {"user:n", 4}, {"app:n", 5}}));
}

BOOST_AUTO_TEST_SUITE_END()
