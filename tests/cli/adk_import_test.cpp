#include "../stores/postgres_server.hpp"
#include "adk_database.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(adk_import)

namespace {

namespace data = boost::unit_test::data;

using words = stored_sessions::words;

const words shop_ann_s1{"--app", "shop", "--user", "ann", "--session", "s1"};

/// ADK's own reading of a sample, without the nulls of the state, which troupe
/// does not keep.
std::vector<json> read_by_adk(const std::string& name) {
  auto sessions = objects(adk_sample(name + ".jsonl"));
  for (auto& each : sessions) {
    auto state = json::object();
    for (const auto& [key, held] : each["state"].items())
      if (!held.is_null())
        state[key] = held;
    each["state"] = std::move(state);
  }
  return sessions;
}

words key_of(const json& session) {
  return {"--app",
          session["appName"],
          "--user",
          session["userId"],
          "--session",
          session["id"]};
}

std::string
replaced(std::string text, const std::string& from, const std::string& to) {
  for (auto at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// The sample as PostgreSQL keeps it: jsonb, and times without a zone. jsonb
/// has no NUL.
std::string postgres_sample() {
  auto text = adk_sample("v1.sql");
  text = replaced(text, "DATETIME", "TIMESTAMP WITHOUT TIME ZONE");
  text = replaced(text, "state TEXT", "state JSONB");
  text = replaced(text, "event_data TEXT", "event_data JSONB");
  text = replaced(text, " \\u0000", "");
  // The sample fills `events` before it makes `sessions`.
  const auto key = text.find(", \n\tFOREIGN KEY");
  return text.erase(key, text.find("CASCADE", key) + 7 - key);
}

struct broken_row {
  const char* change;
  const char* error;
};

std::ostream& operator<<(std::ostream& target, const broken_row& row) {
  return target << row.change;
}

const std::vector<broken_row> broken_rows{
  {"UPDATE sessions SET state='{' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: "},
  {"UPDATE sessions SET state='[1]' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: its state is no JSON "
   "object"},
  {"UPDATE sessions SET state='{\"a\": NaN}' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: "},
  {"UPDATE sessions SET state='{\"a\": 18446744073709551616}' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: "},
  {"UPDATE sessions SET state='{\"__a\": 1}' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: "},
  {"UPDATE sessions SET update_time='soon' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/s2: its update_time is no "
   "time"},
  {"UPDATE sessions SET id='' WHERE id='s2'",
   "invalid_argument: table sessions, row shop/ann/: "},
  {"INSERT INTO sessions SELECT app_name, user_id, ' s2 ', state, create_time, "
   "update_time FROM sessions WHERE id='s2'",
   "comes twice"},
  {"UPDATE app_states SET state='{\"a\": [}' WHERE app_name='shop'",
   "invalid_argument: table app_states, row shop: "},
  {"UPDATE user_states SET state='7' WHERE user_id='ann'",
   "invalid_argument: table user_states, row shop/ann: its state is no JSON "
   "object"},
  {"UPDATE user_states SET state='7' WHERE user_id='eve'",
   "invalid_argument: table user_states, row lone/eve: its state is no JSON "
   "object"},
  {"UPDATE events SET event_data='{\"author\": 1}' WHERE id='e4'",
   "invalid_argument: table events, row shop/ann/s1/e4: "},
  {"UPDATE events SET event_data='nonsense' WHERE id='e4'",
   "invalid_argument: table events, row shop/ann/s1/e4: "},
  {"UPDATE events SET event_data='\"text\"' WHERE id='e4'",
   "invalid_argument: table events, row shop/ann/s1/e4: its event_data is no "
   "JSON object"},
  {"UPDATE events SET event_data='{\"partial\": true}' WHERE id='e4'",
   "invalid_argument: table events, row shop/ann/s1/e4: it is partial"},
  {"UPDATE events SET event_data='{}', timestamp='never' WHERE id='e4'",
   "invalid_argument: table events, row shop/ann/s1/e4: its timestamp is no "
   "time"},
  {"UPDATE events SET event_data='{\"x\": \"' || printf('%.*c', 2000000, 'x') "
   "|| '\"}' WHERE id='e4'",
   "too_large: table events, row shop/ann/s1/e4: "},
};

const std::vector<broken_row> other_databases{
  {"DROP TABLE user_states", "is no database of ADK: it has no table user_"},
  {"ALTER TABLE events RENAME COLUMN event_data TO data",
   "is no database of ADK: its table events has no column event_data"},
  {"UPDATE adk_internal_metadata SET value='2'",
   "has version '2' of ADK's layout, and only version 1 can be read"},
  {"UPDATE adk_internal_metadata SET value='0'",
   "'adk migrate session --source_db_url=OLD_URL --dest_db_url=NEW_URL'"},
};

} // namespace

BOOST_DATA_TEST_CASE_F(adk_database,
                       sessions_are_those_that_adk_reads,
                       data::make({"v1", "sqlite_service"})) {
  const std::string name = sample;
  const auto file = make(name + ".sql");
  const auto before = content_of(file);
  const auto done = import_from("sqlite:" + file);
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.errors == "imported 3 sessions with 12 events\n");
  for (const auto& wanted : read_by_adk(name))
    BOOST_TEST(exported(key_of(wanted)) == wanted);
  BOOST_TEST(objects(done.output).size() == 3U);
  BOOST_TEST(content_of(file) == before);
  for (const auto* ending : {"-journal", "-wal", "-shm"})
    BOOST_TEST(!std::filesystem::exists(file + ending));
}

BOOST_FIXTURE_TEST_CASE(further_fields_of_functions_go_in_and_out,
                        adk_database) {
  const auto file = make("v1.sql");
  const std::string stored
    = R"({"author":"shop","content":{"parts":[{"function_call":{"args":{"a_b":1},)"
      R"("name":"look","partial_args":[{"json_path":"$.q","string_value":"x"}],)"
      R"("will_continue":true}},{"function_response":{"name":"look","parts":[)"
      R"({"inline_data":{"data":"AAEC","mime_type":"image/png"}}],)"
      R"("response":{"a_b":1},"scheduling":"SILENT","will_continue":false}}],)"
      R"("role":"model"}})";
  run_sql(file, "UPDATE events SET event_data='" + stored + "' WHERE id='e4'");
  imported(file);
  const auto parts_of = [](const json& session) {
    for (const auto& said : session["events"])
      if (said["id"] == "e4")
        return said["content"]["parts"];
    return json();
  };
  BOOST_TEST(to_text(parts_of(exported(shop_ann_s1))) == to_text(R"([
    {"functionCall": {"name": "look", "args": {"a_b": 1},
       "partialArgs": [{"jsonPath": "$.q", "stringValue": "x"}],
       "willContinue": true}},
    {"functionResponse": {"name": "look", "response": {"a_b": 1},
       "parts": [{"inlineData": {"mimeType": "image/png", "data": "AAEC"}}],
       "scheduling": "SILENT", "willContinue": false}}])"_json));
  const auto again = path() + "/again.db";
  BOOST_TEST(
    run("export", joined(shop_ann_s1, {"--to", "adk", "sqlite:" + again})).code
    == 0);
  const auto written
    = run_sql(again, "SELECT event_data FROM events WHERE id='e4'");
  BOOST_REQUIRE(written.size() == 1U);
  BOOST_TEST(to_text(parse_json(written[0]).value()["content"])
             == to_text(parse_json(stored).value()["content"]));
}

BOOST_FIXTURE_TEST_CASE(a_postgres_database_is_read_like_a_file, adk_database) {
  const postgres_server server;
  server.ask(postgres_sample());
  const auto done = import_from(server.url());
  BOOST_TEST(done.code == 0, done.errors);
  for (auto& wanted : read_by_adk("v1")) {
    auto& events = wanted["events"];
    if (events.size() == 11U)
      events[0]["content"]["parts"][0]["text"]
        = "Where is order 17? \U0001f989 \u2028 end";
    BOOST_TEST(exported(key_of(wanted)) == wanted);
  }
  const auto spelled = import_from(
    replaced(server.url(), "postgres://", "postgresql://"), {}, "c.db");
  BOOST_TEST(spelled.errors == done.errors);
  BOOST_TEST(spelled.code == 0);
  server.ask("UPDATE events SET event_data='[]' WHERE id='e4'");
  const auto again = import_from(server.url(), {"--app", "shop"}, "b.db");
  BOOST_TEST(again.code == 1);
  BOOST_TEST(contains(again.errors,
                      "table events, row shop/ann/s1/e4: its event_data is no "
                      "JSON object"),
             again.errors);
  server.ask("DROP TABLE app_states");
  const auto other = import_from(server.url());
  BOOST_TEST(contains(other.errors, "it has no table app_states"),
             other.errors);
}

BOOST_FIXTURE_TEST_CASE(a_long_session_of_postgres_is_read_in_pages,
                        adk_database) {
  const postgres_server server;
  server.ask(postgres_sample());
  // Three events at each time, so that pages end between equal times.
  server.ask("INSERT INTO events SELECT 'e' || n, 'shop', 'ann', 's2', 'i', "
             "timestamp '2026-11-18 12:00:00' + n / 3 * interval '1 second', "
             "'{\"author\": \"user\"}' FROM generate_series(10000, 11400) n");
  const auto done = import_from(server.url());
  BOOST_TEST(done.code == 0, done.errors);
  const auto events
    = exported({"--app", "shop", "--user", "ann", "--session", "s2"})["events"];
  BOOST_REQUIRE(events.size() == 1401U);
  for (std::size_t index = 0; index < events.size(); ++index)
    BOOST_REQUIRE(events[index]["id"] == fmt::format("e{}", 10'000 + index));
}

BOOST_FIXTURE_TEST_CASE(the_stored_state_wins_over_that_of_the_events,
                        adk_database) {
  const auto file = make("v1.sql");
  run_sql(file,
          "UPDATE sessions SET state=json_set(json_remove(state, '$.small'), "
          "'$.n', 7) WHERE user_id='ann' AND id='s1';"
          "UPDATE user_states SET state='{\"name\": \"Anna\", \"new\": 1}' "
          "WHERE user_id='ann';"
          "UPDATE app_states SET state='{\"calls\": 5}' "
          "WHERE app_name='shop'");
  imported(file);
  const auto shown = exported(shop_ann_s1);
  BOOST_TEST(shown["state"]["n"] == 7);
  BOOST_TEST(shown["state"]["given"] == json({{"at", {"creation", nullptr}}}));
  BOOST_TEST(!shown["state"].contains("small"));
  BOOST_TEST(shown["state"]["user:name"] == "Anna");
  BOOST_TEST(shown["state"]["user:new"] == 1);
  BOOST_TEST(!shown["state"].contains("user:orders"));
  BOOST_TEST(shown["state"]["app:calls"] == 5);
  BOOST_TEST(!shown["state"].contains("app:theme"));
  BOOST_REQUIRE(shown["events"].size() == 12U);
  const auto& last = shown["events"].back();
  BOOST_TEST(last["author"] == "system");
  BOOST_TEST(last["actions"]["stateDelta"]
             == json({{"n", 7}, {"small", nullptr}}));
}

BOOST_FIXTURE_TEST_CASE(state_without_a_session_is_imported, adk_database) {
  imported(make("v1.sql"));
  const auto state_of = [this](const words& owner) {
    const auto shown
      = run_program(joined({"state", "get", "--store", store()}, owner));
    return parse_json(shown.output).value()["state"];
  };
  BOOST_TEST(state_of({"--app", "lone"}) == json({{"app:kept", 1}}));
  BOOST_TEST(state_of({"--app", "lone", "--user", "eve"})
             == json({{"user:kept", {2}}}));
}

BOOST_FIXTURE_TEST_CASE(names_choose_sessions, adk_database) {
  const auto address = "sqlite:" + make("v1.sql");
  const auto count
    = [this, &address](const words& options, const std::string& file) {
        const auto done = import_from(address, options, file);
        BOOST_TEST(done.code == 0, done.errors);
        return objects(done.output).size();
      };
  BOOST_TEST(count({"--app", "shop"}, "a.db") == 3U);
  BOOST_TEST(count({"--user", "ann"}, "b.db") == 2U);
  BOOST_TEST(count({"--session", "s2"}, "c.db") == 1U);
  BOOST_TEST(count({"--app", "lone"}, "d.db") == 0U);
  const auto none = import_from(address, {"--user", "nobody"}, "e.db");
  BOOST_TEST(none.code == 1);
  BOOST_TEST(
    none.errors
    == "error: not_found: the database has nothing of user 'nobody'\n");
}

BOOST_FIXTURE_TEST_CASE(an_import_from_adk_goes_on_behind_existing_sessions,
                        adk_database) {
  const auto address = "sqlite:" + make("v1.sql");
  BOOST_TEST(import_from(address, {"--session", "s2"}).code == 0);
  const auto refused = import_from(address);
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors
             == "error: already_exists: session shop/ann/s2 already exists\n");
  const auto done = import_from(address, {"--skip-existing"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.errors
             == "imported 2 sessions with 12 events; 1 session existed "
                "already\n");
  for (const auto& wanted : read_by_adk("v1"))
    BOOST_TEST(exported(key_of(wanted))["state"] == wanted["state"]);
}

// An older session sets the user's key back, and its import comes later.
BOOST_FIXTURE_TEST_CASE(the_newest_session_counts_also_if_it_is_there,
                        adk_database) {
  const words s2{"--app", "press", "--user", "ann", "--session", "s2"};
  run("create", s1);
  run("create", s2);
  run("append", s1, event_line("a", {{"user:x", 1}}, {{"timestamp", 5}}));
  run("append", s2, event_line("b", {{"user:x", 2}}, {{"timestamp", 2e9}}));
  const auto adk = "sqlite:" + path() + "/adk.db";
  BOOST_TEST(run("export", {"--app", "press", "--to", "adk", adk}).code == 0);
  BOOST_TEST(import_from(adk, {"--session", "s2"}, "b.db").code == 0);
  BOOST_TEST(import_from(adk, {"--skip-existing"}, "b.db").code == 0);
  BOOST_TEST(exported(s1, "b.db")["state"]["user:x"] == 2);

  const auto text = run("export", {"--app", "press"}).output;
  BOOST_TEST(run("import", {}, lines(text).at(1), "c.db").code == 0);
  BOOST_TEST(run("import", {"--skip-existing"}, text, "c.db").code == 0);
  BOOST_TEST(exported(s1, "c.db")["state"]["user:x"] == 2);
}

BOOST_DATA_TEST_CASE_F(adk_database,
                       a_broken_row_is_named_and_changes_nothing,
                       data::make(broken_rows)) {
  const auto file = make("v1.sql");
  run_sql(file, sample.change);
  const auto done = import_from("sqlite:" + file);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(contains(done.errors, sample.error), done.errors);
  BOOST_TEST(lines(done.errors).size() == 1U, done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(!std::filesystem::exists(path() + "/troupe.db"));
}

BOOST_DATA_TEST_CASE_F(adk_database,
                       another_layout_is_refused_by_name,
                       data::make(other_databases)) {
  const auto file = make("v1.sql");
  run_sql(file, sample.change);
  const auto done = import_from("sqlite:" + file);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: invalid_argument: " + file),
             done.errors);
  BOOST_TEST(contains(done.errors, sample.error), done.errors);
}

BOOST_FIXTURE_TEST_CASE(the_pickled_layout_is_refused, adk_database) {
  const auto file = make("v0.sql");
  const auto done = import_from("sqlite:" + file);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors
             == "error: invalid_argument: " + file
                  + " has ADK's old layout, whose events are pickled: migrate "
                    "it with 'adk migrate session --source_db_url=OLD_URL "
                    "--dest_db_url=NEW_URL', and import the new database\n");
}

// A program was killed while it wrote: the file has pages of a transaction that
// did not end, and only the journal has the old ones.
BOOST_FIXTURE_TEST_CASE(a_half_written_file_is_refused, adk_database) {
  const auto file = make("v1.sql");
  sqlite3* opened = nullptr;
  sqlite3_open(file.c_str(), &opened);
  const auto run_open = [opened](const char* sql) {
    BOOST_REQUIRE(sqlite3_exec(opened, sql, nullptr, nullptr, nullptr)
                  == SQLITE_OK);
  };
  // The small cache makes SQLite write pages before the end.
  run_open("PRAGMA cache_size=2; PRAGMA cache_spill=1; BEGIN;"
           "UPDATE events SET event_data=event_data || printf('%9000d', 1)");
  const auto copy = path() + "/copy.db";
  std::filesystem::copy_file(file, copy);
  std::filesystem::copy_file(file + "-journal", copy + "-journal");
  sqlite3_close(opened);
  const auto before = content_of(copy);
  const auto done = import_from("sqlite:" + copy);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(
    contains(done.errors, "open it once with a program that may write"),
    done.errors);
  BOOST_TEST(content_of(copy) == before);
}

BOOST_FIXTURE_TEST_CASE(a_file_that_is_no_database_is_refused, adk_database) {
  const auto refused = [this](const std::string& address, int code) {
    const auto done = import_from(address);
    BOOST_TEST(done.code == code, done.errors);
    BOOST_TEST(done.output == "");
    return done.errors;
  };
  write("words.txt", "some words, which are longer than a header of SQLite");
  write("empty.db", "");
  run("create", s1, {}, "own.db");
  BOOST_TEST(contains(refused("sqlite:" + path() + "/words.txt", 1),
                      "not a SQLite database"));
  BOOST_TEST(contains(refused("sqlite:" + path() + "/empty.db", 1),
                      "is no database of ADK: it has no table sessions"));
  BOOST_TEST(contains(refused(store("own.db"), 1),
                      "is no database of ADK: it has no table sessions"));
  BOOST_TEST(contains(refused("sqlite:" + path() + "/none.db", 1),
                      "open " + path() + "/none.db: no such file"));
  BOOST_TEST(contains(refused("memory:", 1), "sqlite:PATH or postgres:URL"));
  BOOST_TEST(contains(refused("adk.db", 2), "has no known scheme"));
  BOOST_TEST(contains(refused("-", 2), "needs FILE"));
}

// Releases before 2.7 wrote other forms of time than today's.
BOOST_FIXTURE_TEST_CASE(times_are_read_in_every_form_of_adk, adk_database) {
  const auto file = make("v1.sql");
  run_sql(file,
          "UPDATE sessions SET update_time='2026-11-18 11:08:20' "
          "WHERE id='s2';"
          "UPDATE sessions SET update_time=1795000300.25 "
          "WHERE user_id<>'ann';"
          "UPDATE events SET event_data=json_remove(event_data, '$.timestamp') "
          "WHERE id IN ('e200', 'e2', 'e3');"
          "UPDATE events SET timestamp='2026-11-18 11:06:42.5' WHERE id='e2';"
          "UPDATE events SET event_data=NULL WHERE id='e9'");
  std::vector<double> updates;
  for (const auto& each : imported(file))
    updates.push_back(each["lastUpdateTime"]);
  BOOST_TEST(updates
               == (std::vector{1795000009.0, 1795000100.0, 1795000300.25}),
             boost::test_tools::per_element());
  const auto events = exported(shop_ann_s1)["events"];
  BOOST_TEST(events[1]["timestamp"] == 1795000002.5);
  BOOST_TEST(events[2]["timestamp"] == 1795000003.0);
  BOOST_TEST(events[9]["id"] == "e9");
  BOOST_TEST(events[9]["invocationId"] == "i5");
  BOOST_TEST(events[9]["timestamp"] == 1795000009.0);
}

BOOST_FIXTURE_TEST_CASE(a_file_with_a_log_is_read_and_gets_no_neighbours,
                        adk_database) {
  const auto file = make("v1.sql");
  run_sql(file, "PRAGMA journal_mode=WAL");
  BOOST_TEST(imported(file).size() == 3U);
  for (const auto* ending : {"-journal", "-wal", "-shm"})
    BOOST_TEST(!std::filesystem::exists(file + ending));
}

BOOST_FIXTURE_TEST_CASE(a_log_of_a_running_program_is_read, adk_database) {
  const auto file = make("v1.sql");
  sqlite3* opened = nullptr;
  sqlite3_open(file.c_str(), &opened);
  const auto run_open = [opened](const char* sql) {
    BOOST_REQUIRE(sqlite3_exec(opened, sql, nullptr, nullptr, nullptr)
                  == SQLITE_OK);
  };
  run_open("PRAGMA journal_mode=WAL;"
           "UPDATE sessions SET state='{\"only\": \"new\"}' WHERE id='s2';"
           "BEGIN; UPDATE sessions SET state='{}' WHERE id='s2'");
  const auto before = content_of(file) + content_of(file + "-wal");
  const auto shown = imported(file, {"--session", "s2"});
  BOOST_TEST(shown.at(0)["state"]["only"] == "new");
  BOOST_TEST((content_of(file) + content_of(file + "-wal") == before));
  sqlite3_close(opened);
}

// The imports end after they have read and checked the sessions.
BOOST_FIXTURE_TEST_CASE(memory_is_that_of_the_longest_session, adk_database) {
  const auto file = make("v1.sql");
  run_sql(file,
          "DELETE FROM events; DELETE FROM sessions;"
          "WITH RECURSIVE n(i) AS "
          "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12) "
          "INSERT INTO sessions SELECT 'shop', 'ann', 's' || i, '{}', "
          "'2026-11-18 11:06:40', '2026-11-18 11:06:40' FROM n;"
          "WITH RECURSIVE n(i) AS "
          "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) "
          "INSERT INTO events SELECT 'e' || i, 'shop', 'ann', s.id, 'i', "
          "1795000000.0 + i, json_object('author', 'user', 'content', "
          "json_object('parts', json_array(json_object('text', "
          "printf('%01000d', i))))) FROM n, sessions s");
  run("create", {"--app", "shop", "--user", "ann", "--session", "s1"});
  const auto one = import_from("sqlite:" + file, {"--session", "s1"});
  const auto all = import_from("sqlite:" + file);
  for (const auto& each : {one, all})
    BOOST_TEST(contains(each.errors, "session shop/ann/s1 already exists"),
               each.errors);
  // All sessions have 48 MB of text.
  BOOST_TEST(all.memory_max < one.memory_max + (std::size_t{16} << 20U));
}

BOOST_FIXTURE_TEST_CASE(a_session_of_100000_events_is_imported_from_adk,
                        adk_database) {
  const auto file = make("v1.sql");
  run_sql(file,
          "UPDATE sessions SET state='{\"n\": 100000, \"given\": 1}' "
          "WHERE id='s2';"
          "WITH RECURSIVE n(i) AS "
          "(SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000) "
          "INSERT INTO events SELECT 'e' || i, 'shop', 'ann', 's2', 'i', "
          "1795000000.0 + i, json_object('author', 'user', 'actions', "
          "json_object('state_delta', json_object('n', i))) FROM n");
  const auto done
    = import_from("sqlite:" + file, {"--session", "s2", "--durability", "os"});
  BOOST_TEST(done.errors == "imported 1 session with 100000 events\n");
  const auto shown = objects(done.output).at(0);
  BOOST_TEST(shown["revision"] == 100'000);
  BOOST_TEST(shown["state"]["n"] == 100'000);
  BOOST_TEST(shown["state"]["given"] == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
