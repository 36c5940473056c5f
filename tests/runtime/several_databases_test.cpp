// Owners over a store of two databases: a group of commits is written to each
// by itself, and a database that fails does not fail apps of the other.

#include "troupe/stores/routed/store.hpp"

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

using step = store_script::step;

BOOST_AUTO_TEST_SUITE(several_databases, *boost::unit_test::timeout(120))

namespace {

const session_key on_radio{"radio", "ann", "s"};

// Apps whose names begin with "p" are in the first database.
struct two_places {
  staged_place one;
  staged_place two;
  std::shared_ptr<std::mutex> mutex = std::make_shared<std::mutex>();
  std::shared_ptr<std::vector<std::string>> warnings
    = std::make_shared<std::vector<std::string>>();

  runtime_options options() const {
    auto chosen = one.beside();
    std::vector<routed_part> parts;
    parts.push_back({"one",
                     std::make_unique<staged_store>(
                       make_memory_store(one.place), one.script)});
    parts.push_back({"two",
                     std::make_unique<staged_store>(
                       make_memory_store(two.place), two.script)});
    chosen.store = std::make_shared<routed_store>(
      std::move(parts), [](std::string_view app) {
        return std::size_t{app.starts_with('p') ? 0U : 1U};
      });
    chosen.on_warning
      = [mutex = mutex, warnings = warnings](const std::string& warning) {
          const std::lock_guard guard(*mutex);
          warnings->push_back(warning);
        };
    return chosen;
  }

  std::vector<std::string> warned() const {
    const std::lock_guard guard(*mutex);
    return *warnings;
  }
};

struct databases : two_places, runtime_fixture {
  databases() : runtime_fixture(options()) {
    open();
    sessions().create(on_radio).value();
  }

  // Sends appends to both apps that are written in one group: the first
  // database holds an earlier commit back meanwhile.
  std::vector<result<event_ptr>> append_to_both(const event& said) {
    answers<event_ptr> appended;
    const auto arrived = one.script->arrived.count();
    one.script->hold();
    sessions().append_event(here, counting()).then(appended.next());
    one.script->arrived.await(arrived + 1);
    sessions().append_event(here, said).then(appended.next());
    sessions().append_event(on_radio, said).then(appended.next());
    one.script->release();
    return appended.await();
  }

  std::uint64_t revision_of(const session_key& key) {
    return sessions().get(key).value().revision();
  }
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(each_app_is_written_to_its_database, databases) {
  for (const auto& each : append_to_both(counting()))
    BOOST_TEST(code_of(each) == "ok", reason_of(each));
  const auto first = make_memory_store(one.place);
  const auto second = make_memory_store(two.place);
  BOOST_TEST(first->load_scope({"press"}).value()->revision == 2U);
  BOOST_TEST(second->load_scope({"radio"}).value()->revision == 1U);
  BOOST_TEST(!first->load_scope({"radio"}).value().has_value());
  BOOST_TEST(!second->load_scope({"press"}).value().has_value());
  app_list_request request(10);
  BOOST_TEST((sessions().list_apps(request).value().names
              == std::vector<std::string>{"press", "radio"}));
  BOOST_TEST(one.damage().empty());
  BOOST_TEST(two.damage().empty());
}

BOOST_FIXTURE_TEST_CASE(a_failed_database_fails_its_apps_alone, databases) {
  two.script->next_commits({step::fail});
  const auto done = append_to_both(counting());
  BOOST_TEST(code_of(done[0]) == "ok", reason_of(done[0]));
  BOOST_TEST(code_of(done[1]) == "ok", reason_of(done[1]));
  BOOST_TEST(code_of(done[2]) == "store_failed");
  BOOST_TEST(contains(reason_of(done[2]), "two: "), reason_of(done[2]));
  BOOST_TEST(revision_of(here) == 2U);
  BOOST_TEST(revision_of(on_radio) == 0U);
  BOOST_TEST(append(on_radio, counting()) == "ok");
  BOOST_TEST(revision_of(on_radio) == 1U);
}

BOOST_FIXTURE_TEST_CASE(the_first_database_may_fail_as_well, databases) {
  one.script->next_commits({step::work, step::fail});
  const auto done = append_to_both(counting());
  BOOST_TEST(code_of(done[0]) == "ok", reason_of(done[0]));
  BOOST_TEST(code_of(done[1]) == "store_failed");
  BOOST_TEST(contains(reason_of(done[1]), "one: "), reason_of(done[1]));
  BOOST_TEST(code_of(done[2]) == "ok", reason_of(done[2]));
  BOOST_TEST(revision_of(here) == 1U);
  BOOST_TEST(revision_of(on_radio) == 1U);
}

BOOST_FIXTURE_TEST_CASE(an_unknown_outcome_is_stored_once, databases) {
  two.script->next_commits({step::fail_anyway});
  const auto done = append_to_both(counting("e"));
  BOOST_TEST(code_of(done[1]) == "ok", reason_of(done[1]));
  BOOST_TEST(code_of(done[2]) == "store_failed");
  BOOST_TEST(sessions().append_event(on_radio, counting("e")).value()->id
             == "e");
  BOOST_TEST(revision_of(on_radio) == 1U);
  BOOST_TEST(
    make_memory_store(two.place)->load_scope({"radio"}).value()->revision
    == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_database_that_is_not_seen_hides_its_apps_alone,
                        databases) {
  two.script->fail_looks(true);
  BOOST_TEST(append(here, counting()) == "ok");
  BOOST_TEST(revision_of(here) == 1U);
  const auto unseen = sessions().get(on_radio).get();
  BOOST_TEST(code_of(unseen) == "store_failed");
  BOOST_TEST(contains(reason_of(unseen), "two: "), reason_of(unseen));
  two.script->fail_looks(false);
  BOOST_TEST(revision_of(on_radio) == 0U);
}

BOOST_FIXTURE_TEST_CASE(changes_of_others_are_seen_in_each_database,
                        databases) {
  runtime_fixture other(options());
  for (int times = 0; times < 3; ++times)
    for (auto* by : {static_cast<runtime_fixture*>(this), &other})
      for (const auto& key : {here, on_radio})
        BOOST_TEST(by->append(key, counting()) == "ok");
  for (const auto& key : {here, on_radio})
    for (auto* by : {static_cast<runtime_fixture*>(this), &other})
      BOOST_TEST(by->sessions().get(key).value().state().all() == counted(6));
}

BOOST_FIXTURE_TEST_CASE(lost_commits_concern_one_database, databases) {
  two.script->on_loss = [] { return lost_history{1, "a backup came back"}; };
  two.script->has_lost = true;
  BOOST_TEST(append(here, counting()) == "ok");
  BOOST_TEST(warned().empty());
  BOOST_TEST(append(on_radio, counting()) == "ok");
  const auto told = warned();
  BOOST_REQUIRE(told.size() == 1U);
  BOOST_TEST(told.front() == "two: a backup came back");
}

BOOST_AUTO_TEST_SUITE_END()
