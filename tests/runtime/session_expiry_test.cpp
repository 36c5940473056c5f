// Removals on conditions: at a revision, and after a time without an update.

#include "troupe/core/environment.hpp"

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(session_expiry, *boost::unit_test::timeout(120))

namespace {

const auto both = data::make({false, true});

// A runtime with simulated time, in memory alone or over a store.
struct aging_fixture {
  explicit aging_fixture(bool over_a_store) : on(options(over_a_store)) {}

  runtime_options options(bool over_a_store) const {
    auto made = over_a_store ? place.options() : runtime_options();
    made.environment = time;
    return made;
  }

  std::string removed_at(std::uint64_t revision) {
    const auto removed
      = on.sessions().remove(here, {.expected_revision = revision}).get();
    return removed ? (*removed ? "removed" : "unknown") : code_of(removed);
  }

  result<std::uint64_t> expire(std::chrono::days unused,
                               std::optional<std::string> user = {}) {
    return on.sessions()
      .expire({here.app, time->now() - unused, std::move(user)})
      .get();
  }

  std::string ids() {
    std::string all;
    for (const auto& row :
         on.sessions().list(list_request(here.app)).value().sessions)
      all += row.key().user + "/" + row.key().id + " ";
    return all;
  }

  std::shared_ptr<simulated_environment> time
    = std::make_shared<simulated_environment>(1);
  staged_place place;
  runtime_fixture on;
};

} // namespace

BOOST_DATA_TEST_CASE(a_session_is_removed_at_the_expected_revision_only,
                     both,
                     over_a_store) {
  aging_fixture with(over_a_store);
  auto& on = with.on;
  BOOST_TEST(with.removed_at(0) == "unknown");
  on.open("s");
  on.append(here, counting());
  BOOST_TEST(with.removed_at(0) == "conflict");
  BOOST_TEST(with.removed_at(2) == "conflict");
  const auto refused
    = on.sessions().remove(here, {.expected_revision = 2}).get();
  BOOST_TEST(refused.error().message()
             == "session " + to_string(here) + " is at revision 1, not 2");
  // It goes on as if nothing had been asked.
  BOOST_TEST(on.append(here, counting()) == "ok");
  BOOST_TEST(with.removed_at(2) == "removed");
  BOOST_TEST(with.removed_at(2) == "unknown");
}

// The letters behind a removal that is refused wait for it.
BOOST_DATA_TEST_CASE(calls_behind_a_refused_removal_go_on, both, over_a_store) {
  aging_fixture with(over_a_store);
  auto& on = with.on;
  on.open("s");
  for (int round = 0; round < 50; ++round) {
    answers<bool> removed;
    answers<event_ptr> appended;
    on.sessions().append_event(here, counting()).then(appended.next());
    on.sessions()
      .remove(here, {.expected_revision = 9'999})
      .then(removed.next());
    on.sessions().append_event(here, counting()).then(appended.next());
    BOOST_TEST(code_of(removed.await().front()) == "conflict");
    for (const auto& each : appended.await())
      BOOST_TEST(code_of(each) == "ok");
  }
  BOOST_TEST(on.fetch(here).revision() == 100U);
}

// The store decides: this runtime does not know the newest event.
BOOST_AUTO_TEST_CASE(an_append_of_another_runtime_saves_the_session) {
  const staged_place place;
  runtime_fixture one(place.options());
  runtime_fixture other(place.options());
  one.open("s");
  BOOST_TEST(one.append(here, counting()) == "ok");
  BOOST_TEST(other.append(here, counting()) == "ok");
  BOOST_TEST(
    code_of(one.sessions().remove(here, {.expected_revision = 1}).get())
    == "conflict");
  BOOST_TEST(other.fetch(here).revision() == 2U);
  BOOST_TEST(one.sessions().remove(here, {.expected_revision = 2}).value());
  BOOST_TEST(code_of(other.sessions().get(here).get()) == "not_found");
}

BOOST_DATA_TEST_CASE(sessions_without_an_update_expire, both, over_a_store) {
  aging_fixture with(over_a_store);
  auto& on = with.on;
  on.open("old", {{"user:k", 1}});
  on.open("used");
  on.open("old", json::object(), "ben");
  with.time->advance(24h * 10);
  on.open("new");
  on.append({here.app, here.user, "used"}, counting());
  BOOST_TEST(with.expire(std::chrono::days(11)).value() == 0U);
  // An update at that very time is not before it.
  BOOST_TEST(with.expire(std::chrono::days(10)).value() == 0U);
  BOOST_TEST(with.expire(std::chrono::days(9), "ben").value() == 1U);
  BOOST_TEST(with.ids() == "ann/new ann/used ann/old ");
  BOOST_TEST(with.expire(std::chrono::days(9)).value() == 1U);
  BOOST_TEST(with.ids() == "ann/new ann/used ");
  BOOST_TEST(on.user_state().at("k") == 1);
}

// It has the revision of the one that was listed.
BOOST_DATA_TEST_CASE(a_new_session_of_the_key_stays, both, over_a_store) {
  aging_fixture with(over_a_store);
  auto& on = with.on;
  on.open("s");
  with.time->advance(48h);
  const auto listed = with.time->now();
  on.sessions().remove(here).value();
  on.open("s");
  const auto removed
    = on.sessions()
        .remove(here, {.expected_revision = 0, .updated_before = listed})
        .get();
  BOOST_TEST(code_of(removed) == "conflict");
  BOOST_TEST(removed.error().message()
             == "session " + to_string(here) + " was updated");
  with.time->advance(1s);
  BOOST_TEST(
    on.sessions().remove(here, {.updated_before = with.time->now()}).value());
}

BOOST_AUTO_TEST_CASE(an_expiry_needs_a_time_and_an_app) {
  aging_fixture with(false);
  const auto code = [&](const expiry_request& request) {
    return code_of(with.on.sessions().expire(request).get());
  };
  BOOST_TEST(code({here.app, timestamp()}) == "invalid_argument");
  BOOST_TEST(code({here.app, timestamp::min()}) == "invalid_argument");
  BOOST_TEST(code({" ", with.time->now()}) == "invalid_argument");
}

// More sessions than one page of the list has.
BOOST_DATA_TEST_CASE(an_expiry_goes_through_all_pages, both, over_a_store) {
  aging_fixture with(over_a_store);
  for (int count = 0; count < 2'500; ++count)
    with.on.open("s" + std::to_string(count));
  with.time->advance(48h);
  BOOST_TEST(with.expire(std::chrono::days(1)).value() == 2'500U);
  BOOST_TEST(with.ids() == "");
}

BOOST_AUTO_TEST_SUITE_END()
