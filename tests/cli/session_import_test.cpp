#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::testing {

namespace {

namespace data = boost::unit_test::data;

using words = stored_sessions::words;

const std::vector<std::string> broken_files{
  "{",
  "[]",
  "{}",
  R"({"id": "s", "appName": "press"})",
  R"({"id": "s", "appName": "press", "userId": "u", "state": []})",
  R"({"id": "s", "appName": "press", "userId": "u", "state": {"__a": 1}})",
  R"({"id": "s", "appName": "press", "userId": "u", "events": [{"id": 1}]})",
  R"({"id": "s", "appName": "press", "userId": "u", "events":
      [{"id": "e"}, {"id": "e"}]})",
  R"({"id": "s", "appName": "press", "userId": "u", "lastUpdateTime": "x"})",
  R"({"id": "s", "app_name": "press", "appName": "press", "userId": "u"})",
};

} // namespace

BOOST_AUTO_TEST_SUITE(session_import)

BOOST_FIXTURE_TEST_CASE(an_imported_session_is_the_exported_one,
                        stored_sessions) {
  run("create",
      joined(s1, {"--state", R"({"a": 1, "b": 1, "user:c": 1, "app:d": 1})"}));
  run("append",
      s1,
      event_line("one", {{"b", 2}, {"user:c", nullptr}, {"app:e", {1, 2}}})
        + event_line("two", {{"f", "x"}}, {{"timestamp", 5}}));
  const auto exported = run("export", s1);
  BOOST_TEST(exported.code == 0, exported.errors);
  const auto shown = parse_json(exported.output).value();
  BOOST_TEST(!shown.contains("revision")); // Other ADKs refuse what is unknown.
  const auto imported = run("import", {}, exported.output, "copy.db");
  BOOST_TEST(imported.code == 0, imported.errors);
  auto printed = parse_json(imported.output).value();
  BOOST_TEST(printed["revision"] == 2);
  BOOST_TEST(printed["events"] == json::array());
  BOOST_TEST(printed["state"] == shown["state"]);
  BOOST_TEST(run("export", s1, {}, "copy.db").output == exported.output);
}

BOOST_FIXTURE_TEST_CASE(all_sessions_of_an_app_move_together, stored_sessions) {
  for (const auto* user : {"ann", "bob"})
    for (const auto* id : {"s1", "s2"}) {
      const words key{"--app", "press", "--user", user, "--session", id};
      run("create", key);
      run("append",
          key,
          event_line(id, {{"app:last", id}, {"user:last", id}, {"own", user}}));
    }
  const words app{"--app", "press"};
  const auto exported = run("export", app);
  BOOST_TEST(lines(exported.output).size() == 4U);
  const auto imported = run("import", {}, exported.output, "copy.db");
  BOOST_TEST(imported.code == 0, imported.errors);
  BOOST_TEST(run("export", app, {}, "copy.db").output == exported.output);
  BOOST_TEST(
    lines(run("export", {"--app", "press", "--user", "bob"}).output).size()
    == 2U);
}

BOOST_FIXTURE_TEST_CASE(the_state_of_the_file_wins_over_that_of_its_events,
                        stored_sessions) {
  const auto text = to_text(
    json{{"id", "s1"},
         {"app_name", "press"},
         {"user_id", "ann"},
         {"last_update_time", 9.5},
         {"state", {{"a", 2}, {"b", 1}, {"user:c", 2}, {"temp:x", 1}}},
         {"events",
          {{{"author", "user"},
            {"timestamp", 3},
            {"actions",
             {{"state_delta", {{"a", 1}, {"gone", 1}, {"user:c", 1}}}}}}}}});
  const auto done = run("import", {}, text);
  BOOST_TEST(done.code == 0, done.errors);
  const auto shown = show("get", s1);
  BOOST_TEST(shown["state"] == json({{"a", 2}, {"b", 1}, {"user:c", 2}}));
  BOOST_TEST(shown["lastUpdateTime"] == 9.5);
  BOOST_REQUIRE(shown["events"].size() == 2U);
  BOOST_TEST(shown["events"][1]["author"] == "system");
  BOOST_TEST(shown["events"][1]["actions"]["stateDelta"]
             == json({{"a", 2}, {"gone", nullptr}, {"user:c", 2}}));
}

BOOST_FIXTURE_TEST_CASE(a_session_can_be_imported_under_another_name,
                        stored_sessions) {
  const auto file = write("one.json", R"({
    "id": "s9", "appName": "other", "userId": "bob", "state": {"a": 1}
  })");
  const auto done = run("import", joined({file}, s1));
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(show("get", s1)["state"] == json({{"a", 1}}));
}

BOOST_FIXTURE_TEST_CASE(what_is_live_is_not_imported_over, stored_sessions) {
  run("create", joined(s1, {"--state", R"({"a": 1})"}));
  const std::string file
    = R"({"id": "s0", "appName": "press", "userId": "ann"})"
      "\n"
      R"({"id": "s1", "appName": "press", "userId": "ann"})"
      "\n";
  const auto done = run("import", {}, file);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: already_exists: "), done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(show("list", {"--app", "press"})["sessions"].size() == 1U);
}

BOOST_DATA_TEST_CASE_F(stored_sessions,
                       a_broken_file_changes_nothing,
                       data::make(broken_files)) {
  const std::string sound
    = R"({"id": "s1", "appName": "press", "userId": "ann"})";
  auto broken = sample;
  std::erase(broken, '\n');
  for (const auto& text : {sample, sound + "\n" + broken}) {
    const auto done = run("import", {}, text);
    BOOST_TEST(done.code == 1);
    BOOST_TEST(done.errors.starts_with("error: invalid_argument: "),
               done.errors);
    BOOST_TEST(lines(done.errors).size() == 1U, done.errors);
    BOOST_TEST(done.output == "");
  }
  BOOST_TEST(!std::filesystem::exists(path() + "/troupe.db"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
