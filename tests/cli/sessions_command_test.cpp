#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <sqlite3.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(sessions_command)

namespace {

namespace data = boost::unit_test::data;

using words = stored_sessions::words;

struct refusal {
  words arguments;
  int code;
  std::string expected = "error: invalid_argument: ";
};

std::ostream& operator<<(std::ostream& out, const refusal& shown) {
  for (const auto& word : shown.arguments)
    out << word << ' ';
  return out;
}

// Arguments after `sessions`; the store is in memory unless they name one.
const std::vector<refusal> refusals{
  {{}, 2},
  {{"walk"}, 2},
  {{"create"}, 2},
  {{"get", "--app", "a", "--user", "u"}, 2},
  {{"follow", "--user", "u"}, 2, "--app"},
  {{"follow", "--app", "a", "--user", " "}, 1},
  {{"follow", "--app", "a", "--session", "s", "--from", "-1"}, 2},
  {{"append", "--app", "a", "--user", "u"}, 2},
  {{"delete", "--app", "a", "--session", "s"}, 2},
  {{"expire", "--app", "a"}, 2, "--days"},
  {{"expire", "--app", "a", "--days", "0"}, 2, "--days"},
  {{"expire", "--days", "3"}, 2, "--app"},
  {{"trim", "--app", "a", "--user", "u", "--session", "s"}, 2, "--to"},
  {{"trim", "--app", "a", "--session", "s", "--to", "1"}, 2, "--user"},
  {{"list", "--user", "u"}, 2},
  {{"export"}, 2},
  {{"export", "--app", "a", "--session", "s"}, 2},
  {{"create", "--app", "a", "--user", "u", "--colour"}, 2},
  {{"create", "--app", "a", "--user", "u", "--state", "{"}, 2, "--state"},
  {{"create", "--app", "a", "--user", "u", "--state", "[1, 2]"},
   2,
   "expected an object"},
  {{"create", "--app", "a", "--user", "u", "--store", "redis:x"}, 2, "--store"},
  {{"create", "--app", "a", "--user", "u", "--store", "troupe.db"}, 2},
  {{"create", "--app", "a", "--user", "u", "--durability", "some"}, 2},
  {{"get", "--app", "a", "--user", "u", "--session", "s", "--recent", "x"}, 2},
  {{"get", "--app", "a", "--user", "u", "--session", "s", "--recent", "-1"}, 2},
  {{"get", "--app", "a", "--user", "u", "--session", "s", "--after", "now"}, 2},
  {{"get", "--app", "a", "--user", "u", "--session", "s", "--after", "nan"}, 2},
  {{"list", "--app", "a", "--limit", "many"}, 2},
  {{"list", "--app", "a", "--limit", "0"}, 1},
  {{"list", "--app", "a", "--cursor", "x"}, 1},
  {{"list", "--app", "a", "--user", " "}, 1},
  {{"create", "--app", "", "--user", "u"}, 1},
  {{"create", "--app", "a", "--user", " "}, 1},
  {{"create", "--app", "a", "--user", "u", "--state", R"({"__x": 1})"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "memory:x"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "sqlite:../x.db"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "sqlite:x?mode=ro"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "sqlite:x#y"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "sqlite:%2e%2e/x"}, 1},
  {{"create", "--app", "a", "--user", "u", "--store", "sqlite:"}, 1},
  {{"get", "--app", "a", "--user", "u", "--session", ""}, 1},
  {{"get", "--app", "a", "--user", "u", "--session", "s"},
   1,
   "error: not_found: "},
  {{"append", "--app", "a", "--user", "u", "--session", "s"},
   1,
   "error: not_found: "},
  {{"export", "--app", "a", "--user", "u", "--session", "s"},
   1,
   "error: not_found: "},
  {{"import", "no/such/file"}, 1},
  {{"import"}, 1, "there is no session to read"},
};

} // namespace

BOOST_DATA_TEST_CASE(says_why_it_refuses, data::make(refusals)) {
  words arguments{"sessions"};
  arguments.insert(
    arguments.end(), sample.arguments.begin(), sample.arguments.end());
  if (arguments.size() > 2
      && !contains(sample.arguments.back(), ":")) // Names no store.
    arguments.insert(arguments.begin() + 2, {"--store", "memory:"});
  const auto done = run_program(arguments);
  BOOST_TEST(done.code == sample.code, done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(contains(done.errors, sample.expected), done.errors);
  BOOST_TEST(lines(done.errors).size() == 1U, done.errors);
}

BOOST_AUTO_TEST_CASE(help_names_the_default_store) {
  for (const auto* name : {"create",
                           "get",
                           "list",
                           "append",
                           "delete",
                           "expire",
                           "export",
                           "import"}) {
    const auto help = run_program({"sessions", name, "--help"});
    BOOST_TEST(help.code == 0);
    BOOST_TEST(contains(help.output, "sqlite:troupe.db"), help.output);
    BOOST_TEST(contains(help.output, "troupe sessions " + std::string(name)));
  }
  BOOST_TEST(contains(run_program({"sessions", "--help"}).output, "append"));
}

// -- create, get, list, delete ----

BOOST_AUTO_TEST_CASE(a_created_session_is_printed_whole) {
  const auto done = run_program({"sessions",
                                 "create",
                                 "--store",
                                 "memory:",
                                 "--app",
                                 " press ",
                                 "--user",
                                 "ann",
                                 "--session",
                                 "[a,b]",
                                 "--state",
                                 R"({"topic": "owls", "temp:x": 1, "n": null,
                                     "user:name": "Ann", "app:theme": "dark"})"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.errors == "");
  auto shown = parse_json(done.output).value();
  BOOST_TEST(shown["lastUpdateTime"].is_number_float());
  shown.erase("lastUpdateTime");
  BOOST_TEST(
    shown
    == json({{"id", "[a,b]"},
             {"appName", "press"},
             {"userId", "ann"},
             {"state",
              {{"topic", "owls"}, {"user:name", "Ann"}, {"app:theme", "dark"}}},
             {"events", json::array()},
             {"revision", 0}}));
}

BOOST_AUTO_TEST_CASE(a_session_without_an_id_gets_a_new_one) {
  std::set<std::string> ids;
  for (const auto& session : {words{}, words{"--session", " "}}) {
    auto arguments = words{
      "sessions", "create", "--store", "memory:", "--app", "a", "--user", "u"};
    arguments.insert(arguments.end(), session.begin(), session.end());
    const auto shown = parse_json(run_program(arguments).output).value();
    ids.insert(shown["id"].get<std::string>());
  }
  BOOST_TEST(ids.size() == 2U);
  BOOST_TEST(ids.begin()->size() == 36U);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_listed_and_deleted_without_ado) {
  const auto listed
    = run_program({"sessions", "list", "--store", "memory:", "--app", "a"});
  BOOST_TEST(listed.code == 0);
  BOOST_TEST(parse_json(listed.output).value()
             == json({{"sessions", json::array()}, {"nextCursor", nullptr}}));
  const auto removed = run_program({"sessions",
                                    "delete",
                                    "--store",
                                    "memory:",
                                    "--app",
                                    "a",
                                    "--user",
                                    "u",
                                    "--session",
                                    "s"});
  BOOST_TEST(removed.code == 0);
  BOOST_TEST(removed.output == "{\"deleted\":false}\n");
}

BOOST_FIXTURE_TEST_CASE(old_sessions_expire, stored_sessions) {
  run("create", s1);
  const std::string old = R"({"id": "old", "appName": "press", "userId": "ben",
                              "lastUpdateTime": 9.5, "state": {}, "events": []})";
  BOOST_REQUIRE(run("import", {}, parse_json(old).value().dump()).code == 0);
  const auto expired = [this](const words& options) {
    return show("expire", joined({"--app", "press"}, options))["deleted"];
  };
  BOOST_TEST(expired({"--days", "1", "--user", "ann"}) == 0);
  BOOST_TEST(expired({"--days", "1"}) == 1);
  BOOST_TEST(expired({"--days", "1"}) == 0);
  BOOST_TEST(run("get", s1).code == 0);
}

BOOST_FIXTURE_TEST_CASE(old_events_expire, stored_sessions) {
  run("create", s1);
  run("append",
      s1,
      event_line("a", {{"n", 1}}, {{"id", "e1"}, {"timestamp", 5}})
        + event_line("a", {{"n", 2}}, {{"id", "e2"}}));
  const words old{"--app", "press", "--days", "1", "--events"};
  BOOST_TEST(show("expire", old) == json({{"deletedEvents", 1}}));
  BOOST_TEST(show("expire", old) == json({{"deletedEvents", 0}}));
  const auto left = show("get", s1);
  BOOST_TEST(left["firstRevision"] == 1);
  BOOST_TEST(left["revision"] == 2);
  BOOST_TEST(left["events"].size() == 1U);
  BOOST_TEST(left["state"] == json({{"n", 2}}));
}

BOOST_FIXTURE_TEST_CASE(a_session_is_deleted_at_the_expected_revision,
                        stored_sessions) {
  run("create", s1);
  const auto refused = run("delete", joined(s1, {"--expected-revision", "1"}));
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(refused.errors, "is at revision 0, not 1"));
  BOOST_TEST(show("delete", joined(s1, {"--expected-revision", "0"}))["deleted"]
             == true);
}

BOOST_FIXTURE_TEST_CASE(a_session_outlives_the_program, stored_sessions) {
  const auto created = show(
    "create", joined(s1, {"--state", R"({"a": 1, "user:b": 2, "app:c": 3})"}));
  BOOST_TEST(show("get", s1) == created);
  const auto again = run("create", s1);
  BOOST_TEST(again.code == 1);
  BOOST_TEST(again.errors.starts_with("error: already_exists: "), again.errors);
  const auto other
    = show("create", {"--app", "press", "--user", "ann", "--session", "s2"});
  BOOST_TEST(other["state"] == json({{"user:b", 2}, {"app:c", 3}}));
  BOOST_TEST(run("delete", s1).output == "{\"deleted\":true}\n");
  BOOST_TEST(run("delete", s1).output == "{\"deleted\":false}\n");
  BOOST_TEST(run("get", s1).errors.starts_with("error: not_found: "));
}

BOOST_FIXTURE_TEST_CASE(the_default_store_is_in_the_working_folder,
                        stored_sessions) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(path());
  const auto done = run_program(joined({"sessions", "create"}, s1));
  std::filesystem::current_path(before);
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(show("get", s1) == parse_json(done.output).value());
}

BOOST_FIXTURE_TEST_CASE(a_store_that_is_not_there_reads_as_empty,
                        stored_sessions) {
  BOOST_TEST(run("list", {"--app", "press"}).code == 0);
  BOOST_TEST(run("get", s1).errors.starts_with("error: not_found: "));
  BOOST_TEST(!std::filesystem::exists(path() + "/troupe.db"));
}

BOOST_FIXTURE_TEST_CASE(get_shows_the_events_asked_for, stored_sessions) {
  run("create", s1);
  std::string input;
  for (int time = 1; time <= 5; ++time)
    input += event_line("e", {{"n", time}}, {{"timestamp", time + 0.25}});
  run("append", s1, input);
  const auto times = [this](const words& options) {
    const auto shown = show("get", joined(s1, options));
    BOOST_TEST(shown["state"]["n"] == 5);
    BOOST_TEST(shown["revision"] == 5);
    std::vector<double> found;
    for (const auto& said : shown["events"])
      found.push_back(said["timestamp"].get<double>());
    return found;
  };
  BOOST_TEST(times({}).size() == 5U);
  BOOST_TEST(times({"--recent", "2"}) == std::vector({4.25, 5.25}));
  BOOST_TEST(times({"--recent", "0"}).empty());
  BOOST_TEST(times({"--after", "4.25"}) == std::vector({4.25, 5.25}));
  BOOST_TEST(times({"--recent", "1", "--after", "4.25"})
             == std::vector({5.25}));
}

BOOST_FIXTURE_TEST_CASE(a_list_comes_in_pages_newest_update_first,
                        stored_sessions) {
  for (const auto* user : {"ann", "bob"})
    for (const auto* id : {"s1", "s2"})
      run("create", {"--app", "press", "--user", user, "--session", id});
  run("append", s1, event_line("news"));
  const auto page = [this](const words& options) {
    return show("list", joined({"--app", "press"}, options));
  };
  const auto all = page({});
  BOOST_TEST(all["sessions"].size() == 4U);
  BOOST_TEST(all["nextCursor"].is_null());
  BOOST_TEST(all["sessions"][0]["id"] == "s1");
  BOOST_TEST(all["sessions"][0]["events"] == json::array());
  BOOST_TEST(all["sessions"][0]["revision"] == 1);
  BOOST_TEST(page({"--user", "bob"})["sessions"].size() == 2U);
  const auto first = page({"--limit", "3"});
  const auto second = page(
    {"--limit", "3", "--cursor", first["nextCursor"].get<std::string>()});
  auto joined_pages = first["sessions"];
  for (const auto& row : second["sessions"])
    joined_pages.push_back(row);
  BOOST_TEST(joined_pages == all["sessions"]);
}

// -- append ----

BOOST_FIXTURE_TEST_CASE(appended_events_are_printed_as_they_are_stored,
                        stored_sessions) {
  run("create", s1);
  const auto done
    = run("append",
          s1,
          event_line("one", {{"a", 1}, {"temp:x", 1}, {"app:b", 2}}) + "\r\n"
            + event_line("two", {{"a", nullptr}}, {{"invocation_id", "i"}}));
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.errors == "");
  const auto shown = show("get", s1);
  BOOST_TEST(shown["events"] == json(objects(done.output)));
  BOOST_TEST(shown["events"].size() == 2U);
  BOOST_TEST(shown["events"][0]["actions"]["stateDelta"]
             == json({{"a", 1}, {"app:b", 2}}));
  BOOST_TEST(shown["events"][1]["invocationId"] == "i");
  BOOST_TEST(shown["state"] == json({{"app:b", 2}}));
}

BOOST_FIXTURE_TEST_CASE(each_event_is_printed_before_the_next_one_comes,
                        stored_sessions) {
  run("create", s1);
  program talk(command("append", s1));
  for (const std::string said : {"one", "two"}) {
    talk.write(event_line(said));
    BOOST_TEST(talk.read_until("\"" + said + "\""));
  }
  BOOST_TEST(talk.wait().code == 0);
}

BOOST_FIXTURE_TEST_CASE(many_events_stay_in_order, stored_sessions) {
  run("create", s1);
  std::string input;
  for (int number = 0; number < 3'000; ++number)
    input += event_line(std::to_string(number), {{"n", number}});
  const auto done = run("append", s1, input);
  const auto printed = objects(done.output);
  BOOST_REQUIRE(printed.size() == 3'000U);
  for (int number = 0; number < 3'000; ++number)
    BOOST_REQUIRE(
      printed[static_cast<std::size_t>(number)]["actions"]["stateDelta"]["n"]
      == number);
  BOOST_TEST(show("get", s1)["events"] == json(printed));
}

struct bad_line {
  std::string text;
  std::string reason;
};

std::ostream& operator<<(std::ostream& out, const bad_line& shown) {
  return out << shown.text;
}

const std::vector<bad_line> bad_lines{
  {"{\n", "error: invalid_argument: line 3: "},
  {"[]\n", "error: invalid_argument: line 3: "},
  {"{\"a\": 1} {\"a\": 2}\n", "error: invalid_argument: line 3: "},
  {"{\"author\": 1}\n", "error: invalid_argument: line 3: "},
  {"{\"actions\": {\"stateDelta\": {\"__x\": 1}}}\n",
   "error: invalid_argument: line 3: "},
  {event_line("x", {{"k", std::string(300'000, 'x')}}),
   "error: too_large: line 3: "},
  {R"({"actions": {"stateOps": [{"op": "add", "key": "word", "value": 1}]}})"
   "\n",
   "error: type_error: line 3: "},
  {R"({"actions": {"stateOps": [{"op": "cas", "key": "word", "value": "y",)"
   R"( "expected": "z"}]}})"
   "\n",
   "error: conflict: line 3: "},
  {event_line("other", {}, {{"id", "first"}}), "error: conflict: line 3: "},
  {event_line("other", {}, {{"id", "before"}}), "error: conflict: line 3: "},
};

BOOST_DATA_TEST_CASE_F(stored_sessions,
                       a_bad_line_ends_it_and_later_ones_are_not_stored,
                       data::make(bad_lines)) {
  run("create", joined(s1, {"--state", R"({"word": "x"})"}));
  run("append", s1, event_line("one", {}, {{"id", "before"}}));
  const auto done = run("append",
                        s1,
                        event_line("two", {}, {{"id", "first"}}) + "\n"
                          + sample.text + event_line("three"));
  BOOST_TEST(done.code == 1);
  BOOST_TEST(contains(done.errors, sample.reason), done.errors);
  BOOST_TEST(lines(done.errors).size() == 1U, done.errors);
  const auto printed = objects(done.output);
  BOOST_REQUIRE(printed.size() == 1U);
  const auto events = show("get", s1)["events"];
  BOOST_REQUIRE(events.size() == 2U);
  BOOST_TEST(events[1] == printed[0]);
}

BOOST_FIXTURE_TEST_CASE(a_line_that_is_sent_again_is_stored_once,
                        stored_sessions) {
  run("create", s1);
  const auto line = event_line(
    "once", {}, {{"id", "e1"}, {"timestamp", 7.5}, {"invocationId", "i"}});
  const auto first = run("append", s1, line + line);
  BOOST_TEST(first.code == 0, first.errors);
  const auto again = run("append", s1, line);
  BOOST_TEST(again.code == 0, again.errors);
  BOOST_TEST(first.output == again.output + again.output);
  BOOST_TEST(show("get", s1)["revision"] == 1);
}

BOOST_FIXTURE_TEST_CASE(a_session_with_a_gap_is_not_printed, stored_sessions) {
  run("create", s1);
  std::string input;
  for (int number = 0; number < 10; ++number)
    input += event_line("e");
  BOOST_TEST(run("append", s1, input).code == 0);
  sqlite3* database = nullptr;
  BOOST_REQUIRE(sqlite3_open((path() + "/troupe.db").c_str(), &database)
                == SQLITE_OK);
  char* reason = nullptr;
  sqlite3_exec(database,
               "DELETE FROM log WHERE session_revision = 5",
               nullptr,
               nullptr,
               &reason);
  BOOST_TEST(reason == nullptr);
  BOOST_TEST(sqlite3_changes(database) == 1);
  sqlite3_close(database);
  const auto done = run("get", s1);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors.starts_with("error: corrupt: "), done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_partial_event_is_neither_stored_nor_printed,
                        stored_sessions) {
  run("create", s1);
  const auto done = run(
    "append", s1, event_line("p", {}, {{"partial", true}}) + event_line("e"));
  BOOST_TEST(done.code == 0);
  BOOST_TEST(objects(done.output).size() == 1U);
  BOOST_TEST(show("get", s1)["revision"] == 1);
}

BOOST_DATA_TEST_CASE_F(stored_sessions,
                       a_signal_ends_the_wait_for_a_line,
                       data::make({SIGINT, SIGTERM})) {
  run("create", s1);
  program talk(command("append", s1));
  talk.write(event_line("one"));
  BOOST_REQUIRE(talk.read_until("\"one\""));
  talk.send(sample);
  talk.read_until("never"); // Reads to its end with stdin still open.
  const auto done = talk.wait();
  BOOST_TEST(done.code == 128 + sample);
  BOOST_TEST(done.errors.starts_with("error: cancelled: "), done.errors);
  BOOST_TEST(show("get", s1)["revision"] == 1);
}

// The events of another program, which the follower has not seen before.
BOOST_DATA_TEST_CASE_F(stored_sessions,
                       a_session_is_followed_until_a_signal,
                       data::make({SIGINT, SIGTERM})) {
  run("create", s1);
  run("append", s1, event_line("one") + event_line("two"));
  program reader(command("follow", joined(s1, {"--from", "1"})));
  BOOST_REQUIRE(reader.read_until("\"two\""));
  run("append", s1, event_line("three"));
  BOOST_REQUIRE(reader.read_until("\"three\""));
  reader.send(sample);
  const auto done = reader.wait();
  BOOST_TEST(done.code == 128 + sample);
  BOOST_TEST(objects(done.output).size() == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_session_is_followed_until_it_is_deleted,
                        stored_sessions) {
  run("create", s1);
  run("append", s1, event_line("one"));
  program reader(command("follow", joined(s1, {"--from", "0"})));
  BOOST_REQUIRE(reader.read_until("\"one\""));
  run("delete", s1);
  const auto done = reader.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors
             == "error: not_found: session press/ann/s1 was removed while it "
                "was followed\n");
}

// The changes of another program, by sessions.
BOOST_DATA_TEST_CASE_F(stored_sessions,
                       a_state_is_followed_without_a_session,
                       data::make({"app", "user"})) {
  const std::string prefix = std::string(sample) + ":";
  std::vector<std::string> place{"--app", "press"};
  if (prefix == "user:")
    place = {"--app", "press", "--user", "ann"};
  run("create", joined(s1, {"--state", "{\"" + prefix + "n\": 1}"}));
  program reader(command("follow", joined(place, {"--from", "0"})));
  BOOST_REQUIRE(reader.read_until("\"" + prefix + "n\":1"));
  run("append",
      s1,
      "{\"author\": \"user\", \"actions\": {\"stateDelta\": {\"" + prefix
        + "n\": 2}}}\n");
  BOOST_REQUIRE(reader.read_until("\"" + prefix + "n\":2"));
  reader.send(SIGINT);
  const auto done = reader.wait();
  BOOST_TEST(done.code == 128 + SIGINT);
  const auto lines = objects(done.output);
  BOOST_TEST_REQUIRE(lines.size() == 2U);
  BOOST_TEST(lines[0]["listsAll"] == true);
  BOOST_TEST(lines[1]["listsAll"] == false);
  BOOST_TEST(
    lines[1]["keys"]
    == json::array({{{"key", prefix + "n"}, {"before", 1}, {"after", 2}}}));
}

BOOST_FIXTURE_TEST_CASE(a_closed_stdout_ends_it_quietly, stored_sessions) {
  run("create", s1);
  program talk(command("append", s1));
  talk.write(event_line("one"));
  BOOST_REQUIRE(talk.read_until("\"one\""));
  talk.close_output();
  talk.write(event_line("two"));
  talk.read_until("never"); // Ends although stdin is still open.
  const auto done = talk.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors == "");
}

// Limits the file size, like `ulimit -f`.
BOOST_FIXTURE_TEST_CASE(a_file_that_may_not_grow_is_a_clear_error,
                        stored_sessions) {
  run("create", s1);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto narrow = before;
  narrow.rlim_cur = 200'000;
  ::setrlimit(RLIMIT_FSIZE, &narrow);
  program talk(command("append", s1));
  ::setrlimit(RLIMIT_FSIZE, &before);
  talk.write(event_line("small"));
  BOOST_REQUIRE(talk.read_until("small"));
  talk.write(event_line(std::string(240'000, 'x')));
  const auto done = talk.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: store_failed: "), done.errors);
  BOOST_TEST(show("get", s1)["revision"] == 1);
}

// The commit of the large line fails; those of later lines would not.
BOOST_FIXTURE_TEST_CASE(lines_behind_a_failed_commit_are_not_stored,
                        stored_sessions) {
  run("create", s1);
  const auto line_of = [](int number, std::size_t size = 10) {
    return event_line(std::string(size, 'x'),
                      {{"n", number}},
                      {{"id", "e" + std::to_string(number)},
                       {"timestamp", number},
                       {"invocationId", "i"}});
  };
  std::string rest = line_of(2, 240'000);
  for (int number = 3; number <= 400; ++number)
    rest += line_of(number);
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto narrow = before;
  narrow.rlim_cur = 200'000;
  ::setrlimit(RLIMIT_FSIZE, &narrow);
  program talk(command("append", s1));
  ::setrlimit(RLIMIT_FSIZE, &before);
  talk.write(line_of(1));
  BOOST_REQUIRE(talk.read_until("e1"));
  talk.write(rest);
  const auto done = talk.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: store_failed: line 2: "),
             done.errors);
  BOOST_TEST(show("get", s1)["revision"] == 1);
  const auto again = run("append", s1, line_of(1) + rest);
  BOOST_TEST(again.code == 0, again.errors);
  const auto events = show("get", s1)["events"];
  BOOST_REQUIRE(events.size() == 400U);
  for (int number = 1; number <= 400; ++number)
    BOOST_REQUIRE(events[static_cast<std::size_t>(number - 1)]["id"]
                  == "e" + std::to_string(number));
}

BOOST_FIXTURE_TEST_CASE(four_programs_append_to_one_session_and_lose_nothing,
                        stored_sessions) {
  constexpr int programs = 4;
  constexpr int count = 50;
  run("create", s1);
  std::vector<std::unique_ptr<program>> writers;
  for (int writer = 0; writer < programs; ++writer)
    writers.push_back(std::make_unique<program>(command("append", s1)));
  for (int number = 0; number < count; ++number)
    for (int writer = 0; writer < programs; ++writer) {
      const auto key = std::to_string(writer) + "." + std::to_string(number);
      writers[static_cast<std::size_t>(writer)]->write(
        event_line(key, {{key, true}, {"app:" + key, true}})
        + R"({"actions": {"stateOps": [{"op": "add", "key": "user:n",)"
        + R"( "value": 1}, {"op": "add", "key": "app:n", "value": 1}]}})"
        + "\n");
    }
  for (const auto& writer : writers) {
    const auto done = writer->wait();
    BOOST_TEST(done.code == 0, done.errors);
    BOOST_TEST(lines(done.output).size() == 2U * count);
  }
  const auto shown = show("get", s1);
  BOOST_TEST(shown["revision"] == 2 * count * programs);
  BOOST_TEST(shown["state"]["user:n"] == count * programs);
  BOOST_TEST(shown["state"]["app:n"] == count * programs);
  BOOST_TEST(shown["state"].size() == 2U * count * programs + 2);
}

BOOST_FIXTURE_TEST_CASE(the_user_has_the_default_of_runs, stored_sessions) {
  const words key{"--app", "press", "--session", "s"};
  BOOST_TEST(run("create", key).code == 0);
  BOOST_TEST(run("append", key, event_line("hi")).code == 0);
  const auto shown = show("get", key);
  BOOST_TEST(shown["userId"] == "user");
  BOOST_TEST(shown["revision"] == 1);
  BOOST_TEST(run("delete", key).code == 2); // A removal asks for the name.
  BOOST_TEST(show("get", key)["revision"] == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
