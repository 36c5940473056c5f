// Lists of apps and users, and the removal of whole apps.

#include "troupe/stores/artifact_store.hpp"

#include "staged_store.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <deque>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

using step = store_script::step;
using names = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(name_lists, *boost::unit_test::timeout(120))

namespace {

constexpr auto kept_in_memory = false;
constexpr auto kept_in_store = true;

struct listed_fixture : staged_place, runtime_fixture {
  explicit listed_fixture(bool in_store)
    : runtime_fixture(in_store ? options() : runtime_options()) {}

  void create(const std::string& app,
              const std::string& user,
              json state = json::object()) {
    sessions().create({app, user}, std::move(state)).value();
  }

  names apps(std::size_t limit = 100) {
    names all;
    app_list_request request(limit);
    do {
      const auto page = sessions().list_apps(request).value();
      BOOST_TEST(page.names.size() <= limit);
      all.insert(all.end(), page.names.begin(), page.names.end());
      request.cursor = page.next_cursor;
    } while (!request.cursor.empty());
    return all;
  }

  names users(const std::string& app, std::size_t limit = 100) {
    names all;
    user_list_request request(app, limit);
    do {
      const auto page = sessions().list_users(request).value();
      BOOST_TEST(page.names.size() <= limit);
      all.insert(all.end(), page.names.begin(), page.names.end());
      request.cursor = page.next_cursor;
    } while (!request.cursor.empty());
    return all;
  }
};

void check_same(const names& found, const names& expected) {
  BOOST_TEST(found == expected, boost::test_tools::per_element());
}

} // namespace

BOOST_DATA_TEST_CASE(names_are_in_the_order_of_their_bytes,
                     data::make({kept_in_memory, kept_in_store})
                       * data::make({1U, 2U, 5U, 100U}),
                     in_store,
                     limit) {
  listed_fixture on(in_store);
  for (const auto* user : {"b", "ä", "a", "B", "ab"})
    on.create("press", user);
  for (const auto* app : {"radio", "Press", "ärger", "press 2"})
    on.create(app, "ann");
  check_same(on.users("press", limit), {"B", "a", "ab", "b", "ä"});
  check_same(on.apps(limit), {"Press", "press", "press 2", "radio", "ärger"});
  check_same(on.users("none", limit), {});
}

BOOST_DATA_TEST_CASE(users_stay_listed_until_they_are_removed,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  const auto key = on.open("s", {{"user:k", 1}});
  on.sessions().remove(key).value();
  check_same(on.users("press"), {"ann"});
  check_same(on.apps(), {"press"});
  on.sessions().remove_user("press", "ann").value();
  check_same(on.users("press"), {});
  check_same(on.apps(), {});
}

BOOST_DATA_TEST_CASE(an_app_with_nothing_but_keys_is_listed,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  on.create("press", "ann", {{"app:k", 1}});
  on.sessions().remove_user("press", "ann").value();
  check_same(on.apps(), {"press"});
}

// A refused write or creation makes the actor of its user, which has to end.
// After a creation it ends a moment after the answer.
BOOST_DATA_TEST_CASE(what_is_refused_makes_no_user,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  auto bob = on.sessions().state_of_user("press", "bob");
  BOOST_TEST(code_of(bob.compare_and_set("user:n", 1, 2).get()) == "conflict");
  create_request refused{"press", "cid", "s"};
  refused.events.emplace_back().author = "cid";
  refused.events.back()
    .actions.state_delta
    .record("n", operation_kind::compare_and_set, json(2), json(1))
    .value();
  BOOST_TEST(code_of(on.sessions().create(refused).get()) == "conflict");
  BOOST_TEST(!on.sessions().remove_user("press", "cid").value());
  check_same(on.users("press"), {});
  check_same(on.apps(), {});

  BOOST_TEST(bob.set("user:n", 1).get().has_value());
  on.create("press", "cid");
  check_same(on.users("press"), {"bob", "cid"});
}

BOOST_DATA_TEST_CASE(bad_pages_are_refused,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  BOOST_TEST(code_of(on.sessions().list_apps({0}).get()) == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().list_users({"press", 0}).get())
             == "invalid_argument");
  BOOST_TEST(code_of(on.sessions().list_users({" "}).get())
             == "invalid_argument");
  on.create("press", "ann");
  on.runtime.shut_down().value();
  BOOST_TEST(code_of(on.sessions().list_apps().get()) == "cancelled");
  BOOST_TEST(code_of(on.sessions().list_users({"press"}).get()) == "cancelled");
}

// -- removing an app ----

BOOST_DATA_TEST_CASE(remove_app_takes_all_of_one_app,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  json state{{"k", 1}, {"user:k", 1}};
  for (int key = 0; key < 600; ++key)
    state["app:k" + std::to_string(key)] = key;
  on.create("press", "ann", state);
  on.create("press", "ann");
  on.create("press", "bob");
  on.create("radio", "ann", {{"app:k", 1}});
  BOOST_TEST(on.sessions().remove_app(" press").value());
  check_same(on.apps(), {"radio"});
  check_same(on.users("press"), {});
  BOOST_TEST(on.rows().empty());
  BOOST_TEST(on.app_state() == json::object());
  BOOST_TEST(on.user_state() == json::object());
  BOOST_TEST(on.sessions().app_state("radio").value() == json({{"k", 1}}));
  BOOST_TEST(!on.sessions().remove_app("press").value());
  BOOST_TEST(!on.sessions().remove_app("none").value());
  BOOST_TEST(code_of(on.sessions().remove_app("").get()) == "invalid_argument");
  BOOST_TEST(on.damage().empty());
}

BOOST_DATA_TEST_CASE(remove_app_forgets_the_ids_of_writes,
                     data::make({kept_in_memory, kept_in_store}),
                     in_store) {
  listed_fixture on(in_store);
  const auto app = on.sessions().state_of_app("press");
  app.set("app:k", 1, shared_write_options("w1")).value();
  app.erase("app:k").value();
  on.sessions().remove_app("press").value();
  check_same(on.apps(), {});
  app.set("app:k", 2, shared_write_options("w1")).value();
  BOOST_TEST(on.app_state() == json({{"k", 2}}));
  BOOST_TEST(on.damage().empty());
}

BOOST_AUTO_TEST_CASE(an_app_that_was_removed_can_be_used_again) {
  for (const bool in_store : {kept_in_memory, kept_in_store}) {
    listed_fixture on(in_store);
    on.create("press", "ann", {{"app:k", 1}, {"user:k", 1}});
    on.sessions().remove_app("press").value();
    const auto key = on.open("s", {{"app:n", 2}});
    BOOST_TEST(on.state(key) == json({{"app:n", 2}}));
  }
}

BOOST_AUTO_TEST_CASE(remove_app_takes_the_artifacts_along) {
  runtime_fixture on;
  const auto key = on.open();
  const session_key other{"radio", "ann", "s"};
  on.sessions().create(other).value();
  auto& files = *on.runtime.artifacts();
  files.save(key, "a", part("x")).value();
  files.save(key, "user:b", part("x")).value();
  files.save(other, "a", part("x")).value();
  // Left by a removal that ended before the artifacts were removed.
  files.save({"press", "gone", "s"}, "a", part("x")).value();
  on.sessions().remove_app("press").value();
  BOOST_TEST(files.list(key).value().empty());
  BOOST_TEST(files.list({"press", "gone", "s"}).value().empty());
  BOOST_TEST(files.list(other).value().size() == 1U);
}

// Each commit of the removal fails in turn. The rest stays listed, and the
// second call removes it.
BOOST_DATA_TEST_CASE(a_second_call_finishes_a_removal_that_failed,
                     data::make({false, true}) * data::xrange(8U),
                     is_written,
                     commits_before) {
  listed_fixture on(kept_in_store);
  on.create("press", "ann", {{"app:k", 1}});
  on.create("press", "bob");
  std::deque<step> steps(commits_before, step::work);
  steps.push_back(is_written ? step::fail_anyway : step::fail);
  on.script->next_commits(steps);
  const auto first = on.sessions().remove_app("press").get();
  on.script->next_commits({});
  if (first) {
    check_same(on.apps(), {});
  } else {
    BOOST_TEST(code_of(first) == "store_failed");
    on.sessions().remove_app("press").value();
  }
  check_same(on.apps(), {});
  BOOST_TEST(on.app_state() == json::object());
  BOOST_TEST(on.damage().empty());
}

BOOST_AUTO_TEST_CASE(remove_app_would_deadlock_on_a_thread_of_the_runtime) {
  listed_fixture on(kept_in_memory);
  const auto key = on.open();
  answers<bool> asked;
  const auto done = asked.next();
  on.sessions().get(key).then([&on, done](const result<session>&) {
    done(on.sessions().remove_app("press").get());
  });
  const auto given = asked.await();
  BOOST_TEST(code_of(given.front()) == "would_deadlock");
}

BOOST_AUTO_TEST_SUITE_END()
