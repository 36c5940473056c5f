// `--store apps:FILE`: the commands find each app in its database.

#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(several_databases)

namespace {

struct two_files : stored_sessions {
  two_files() {
    write("rules",
          "# Two files.\npress* sqlite:" + path()
            + "/press.db\n* sqlite:" + path() + "/rest.db\n");
  }

  std::string all() const { return "apps:" + path() + "/rules"; }

  ended use(const words& options) const {
    return run_program(joined(options, {"--store", all()}));
  }

  ended use(const std::string& file, const words& options) const {
    return run_program(joined(options, {"--store", store(file)}));
  }

  // The names that the command prints.
  static json apps(const ended& listed) {
    BOOST_TEST(listed.code == 0, listed.errors);
    return parse_json(listed.output).value().at("apps");
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(each_app_is_in_its_database, two_files) {
  for (const auto* app : {"press", "radio", "press-2"}) {
    const auto made = use({"sessions",
                           "create",
                           "--app",
                           app,
                           "--user",
                           "ann",
                           "--session",
                           "s1",
                           "--state",
                           R"({"app:n": 1})"});
    BOOST_TEST(made.code == 0, made.errors);
    const auto added = use({"state", "add", "app:n", "2", "--app", app});
    BOOST_TEST(added.code == 0, added.errors);
  }
  BOOST_TEST((apps(use({"apps", "list"}))
              == json::array({"press", "press-2", "radio"})));
  BOOST_TEST((apps(use("press.db", {"apps", "list"}))
              == json::array({"press", "press-2"})));
  BOOST_TEST(
    (apps(use("rest.db", {"apps", "list"})) == json::array({"radio"})));
  for (const auto* app : {"press", "radio"}) {
    const auto state = use({"state", "get", "--app", app});
    BOOST_TEST(parse_json(state.output).value().at("state")
               == json({{"app:n", 3}}));
    const auto listed = use({"sessions", "list", "--app", app});
    BOOST_TEST(contains(listed.output, "s1"), listed.output);
  }
  const auto runs = use({"runs"});
  BOOST_TEST(runs.code == 0, runs.errors);
  const auto checked = use({"store", "check"});
  BOOST_TEST(checked.code == 0, checked.errors);
  BOOST_TEST(checked.errors == "the store is sound\n");
}

// The steps of docs/operations.md.
BOOST_FIXTURE_TEST_CASE(an_app_is_moved_by_export_and_import, two_files) {
  BOOST_TEST(use({"sessions",
                  "create",
                  "--app",
                  "radio",
                  "--user",
                  "ann",
                  "--session",
                  "s1",
                  "--state",
                  R"({"user:n": 1})"})
               .code
             == 0);
  write("rules",
        "press* sqlite:" + path() + "/press.db\nradio sqlite:" + path()
          + "/radio.db\n* sqlite:" + path() + "/rest.db\n");
  const auto misplaced = use({"store", "check"});
  BOOST_TEST(misplaced.code == 1);
  BOOST_TEST(
    contains(misplaced.output, "the app 'radio' is here, but its rule"),
    misplaced.output);
  const auto exported
    = use("rest.db", {"sessions", "export", "--app", "radio"});
  BOOST_TEST(exported.code == 0, exported.errors);
  const auto file = write("radio.jsonl", exported.output);
  const auto imported = use({"sessions", "import", file});
  BOOST_TEST(imported.code == 0, imported.errors);
  BOOST_TEST(use("rest.db", {"apps", "remove", "--app", "radio", "--yes"}).code
             == 0);
  const auto checked = use({"store", "check"});
  BOOST_TEST(checked.code == 0, checked.output);
  BOOST_TEST(
    (apps(use("radio.db", {"apps", "list"})) == json::array({"radio"})));
  const auto state = use({"state", "get", "--app", "radio", "--user", "ann"});
  BOOST_TEST(parse_json(state.output).value().at("state")
             == json({{"user:n", 1}}));
}

BOOST_FIXTURE_TEST_CASE(wrong_rules_are_refused, two_files) {
  write("rules", "press sqlite:a.db\n");
  const auto refused = use({"apps", "list"});
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(refused.errors, "no rule is for all other apps"),
             refused.errors);
  write("rules", "* sqlite:a.db\npress redis:x\n");
  BOOST_TEST(contains(use({"apps", "list"}).errors, "rules:2: 'press': "));
  const auto vacuumed = use({"store", "vacuum"});
  BOOST_TEST(vacuumed.code == 1);
  BOOST_TEST(contains(vacuumed.errors, "several databases"), vacuumed.errors);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
