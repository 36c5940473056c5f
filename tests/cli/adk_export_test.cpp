#include "adk_database.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(adk_export)

namespace {

using words = stored_sessions::words;

const std::string definitions
  = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name";

struct exporting : adk_database {
  const std::string file = path() + "/new.db";

  ended export_to(const std::string& address, const words& options) const {
    return run("export", joined({"--to", "adk", address}, options));
  }

  std::vector<std::string> rows(const std::string& query) const {
    return run_sql(file, query);
  }

  bool has_part() const {
    const std::filesystem::directory_iterator all(path());
    return std::ranges::any_of(
      all, [](const auto& each) { return each.path().extension() == ".part"; });
  }

  std::size_t file_count() const {
    const std::filesystem::directory_iterator all(path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(the_tables_are_those_of_adk, exporting) {
  const auto made = make("v1.sql");
  imported(made);
  const auto done = export_to("sqlite:" + file, {"--app", "shop"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors == "exported 3 sessions with 12 events\n");
  BOOST_TEST(rows(definitions) == run_sql(made, definitions),
             boost::test_tools::per_element());
  BOOST_TEST(rows("SELECT state FROM app_states")
               == std::vector<std::string>{R"({"calls":2,"theme":"dark"})"},
             boost::test_tools::per_element());
  const std::string columns
    = "SELECT id || user_id || session_id || invocation_id FROM events "
      "ORDER BY timestamp, user_id, session_id, id";
  BOOST_TEST(rows(columns) == run_sql(made, columns),
             boost::test_tools::per_element());
  const std::string times = "SELECT update_time FROM sessions ORDER BY 1";
  BOOST_TEST(rows(times) == run_sql(made, times),
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(fields_have_the_names_under_which_adk_stores_them,
                        exporting) {
  const auto made = make("v1.sql");
  imported(made);
  export_to("sqlite:" + file, {"--app", "shop"});
  const std::string events = "SELECT event_data FROM events ORDER BY id";
  const auto stored = run_sql(made, events);
  const auto written = rows(events);
  BOOST_REQUIRE(written.size() == stored.size());
  for (std::size_t index = 0; index < stored.size(); ++index)
    BOOST_TEST(parse_json(written[index]).value()
               == parse_json(stored[index]).value());
}

BOOST_FIXTURE_TEST_CASE(an_exported_database_is_imported_again, exporting) {
  run("create",
      joined(s1, {"--state", R"({"a": 1, "user:b": 2, "app:c": 3})"}));
  run("append",
      s1,
      event_line("one", {{"a", 2}, {"user:b", nullptr}, {"d", nullptr}})
        + event_line("two", {{"e", "\u00e9"}}, {{"timestamp", 5}}));
  BOOST_TEST(export_to("sqlite:" + file, s1).code == 0);
  const auto done = import_from("sqlite:" + file, {}, "copy.db");
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(exported(s1, "copy.db") == exported(s1));
}

// ADK reads events in the order of their times.
BOOST_FIXTURE_TEST_CASE(times_rise_in_the_order_of_the_events, exporting) {
  run("create", s1);
  std::string text;
  for (const auto* id : {"c", "b", "a"})
    text += event_line("one", {}, {{"timestamp", 7}, {"id", id}});
  run("append",
      s1,
      text + event_line("two", {}, {{"timestamp", 6}, {"id", "0"}}));
  BOOST_TEST(export_to("sqlite:" + file, s1).code == 0);
  BOOST_TEST(rows("SELECT id || ' ' || timestamp FROM events ORDER BY rowid")
               == (std::vector<std::string>{"c 1970-01-01 00:00:07.000000",
                                            "b 1970-01-01 00:00:07.000001",
                                            "a 1970-01-01 00:00:07.000002",
                                            "0 1970-01-01 00:00:07.000003"}),
             boost::test_tools::per_element());
  BOOST_TEST(rows("SELECT event_data ->> 'timestamp' FROM events "
                  "ORDER BY rowid")
               == (std::vector<std::string>{"7.0", "7.0", "7.0", "6.0"}),
             boost::test_tools::per_element());
}

// ADK refuses a session with an unknown action.
BOOST_FIXTURE_TEST_CASE(unknown_actions_are_left_out, exporting) {
  run("create", joined(s1, {"--state", R"({"n": 1})"}));
  run("append",
      s1,
      R"({"author": "user", "actions": {"escalate": true, "other": 1,)"
      R"( "stateOps": [{"op": "add", "key": "n", "value": 2}]}})"
      "\n");
  BOOST_TEST(export_to("sqlite:" + file, s1).code == 0);
  BOOST_TEST(
    parse_json(rows("SELECT event_data -> 'actions' FROM events").at(0)).value()
    == json({{"artifact_delta", json::object()},
             {"escalate", true},
             {"state_delta", {{"n", 3}}}}));
}

// ADK refuses a summary with other fields, or without its times.
BOOST_FIXTURE_TEST_CASE(a_summary_has_the_fields_of_adk, exporting) {
  run("create", s1);
  run("append",
      s1,
      R"({"author": "user", "timestamp": 7, "actions": {"compaction": {)"
      R"("startRevision": 1, "endRevision": 4, "startTimestamp": 2.5, )"
      R"("endTimestamp": 6, "compactedContent": {"role": "model"}}}})"
      "\n"
      R"({"author": "user", "timestamp": 8, "actions": {"compaction": {)"
      R"("endRevision": 1, "compactedContent": {"role": "model"}}}})"
      "\n");
  BOOST_TEST(export_to("sqlite:" + file, s1).code == 0);
  const auto written
    = rows("SELECT event_data -> 'actions' -> 'compaction' FROM events "
           "ORDER BY timestamp");
  BOOST_TEST_REQUIRE(written.size() == 2U);
  BOOST_TEST(parse_json(written[0]).value()
             == json({{"start_timestamp", 2.5},
                      {"end_timestamp", 6},
                      {"compacted_content", {{"role", "model"}}}}));
  BOOST_TEST(parse_json(written[1]).value()
             == json({{"start_timestamp", 0.0},
                      {"end_timestamp", 8.0},
                      {"compacted_content", {{"role", "model"}}}}));
}

BOOST_FIXTURE_TEST_CASE(users_without_sessions_keep_their_state, exporting) {
  imported(make("v1.sql"));
  BOOST_TEST(export_to("sqlite:" + file, {"--app", "lone"}).errors
             == "exported 0 sessions with 0 events\n");
  BOOST_TEST(rows("SELECT user_id || state FROM user_states")
               == std::vector<std::string>{R"(eve{"kept":[2]})"},
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(only_a_new_file_is_written, exporting) {
  run("create", s1);
  write("new.db", "mine");
  const auto files = file_count();
  const auto refused = export_to("sqlite:" + file, s1);
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors.starts_with("error: already_exists: "),
             refused.errors);
  BOOST_TEST(content_of(file) == "mine");
  const auto link = path() + "/link.db";
  std::filesystem::create_symlink("nowhere.db", link);
  BOOST_TEST(export_to("sqlite:" + link, s1).code == 1);
  BOOST_TEST(!std::filesystem::exists(path() + "/nowhere.db"));
  std::filesystem::remove(link);
  BOOST_TEST(file_count() == files);
}

BOOST_FIXTURE_TEST_CASE(a_failed_export_leaves_no_file, exporting) {
  run("create", s1);
  const auto files = file_count();
  const auto missing = export_to(
    "sqlite:" + file, {"--app", "press", "--user", "ann", "--session", "s2"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(missing.errors.starts_with("error: not_found: "), missing.errors);
  BOOST_TEST(file_count() == files);
  BOOST_TEST(export_to("postgres://localhost/x", s1).code == 1);
  BOOST_TEST(export_to("new.db", s1).code == 2);
  BOOST_TEST(run("export", joined({"sqlite:new.db"}, s1)).code == 2);
  BOOST_TEST(run("export", joined({"--to", "xml"}, s1)).code == 2);
}

BOOST_FIXTURE_TEST_CASE(an_interrupted_export_leaves_no_file, exporting) {
  const auto long_one = make("v1.sql");
  run_sql(long_one,
          "WITH RECURSIVE n(i) AS "
          "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
          "INSERT INTO events SELECT 'e' || i, 'shop', 'ann', 's2', 'i', "
          "1795000000.0 + i, '{\"author\": \"user\"}' FROM n");
  imported(long_one, {"--session", "s2", "--durability", "os"});
  program writing(
    command("export", {"--to", "adk", "sqlite:" + file, "--app", "shop"}));
  // The part appears long before the end.
  while (!has_part())
    std::this_thread::yield();
  writing.send(SIGTERM);
  const auto done = writing.wait();
  BOOST_TEST(done.code == 128 + SIGTERM);
  BOOST_TEST(done.errors == "error: cancelled: interrupted\n");
  BOOST_TEST(!has_part());
  BOOST_TEST(!std::filesystem::exists(file));
}

BOOST_FIXTURE_TEST_CASE(an_exported_file_is_private, exporting) {
  run("create", s1);
  export_to("sqlite:" + file, s1);
  using std::filesystem::perms;
  const auto shown = std::filesystem::status(file).permissions() & perms::all;
  BOOST_TEST((shown == (perms::owner_read | perms::owner_write)));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
