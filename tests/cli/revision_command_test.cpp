// Earlier revisions of sessions: `get --at`, `history` and `diff`.

#include "troupe/stores/artifact_store.hpp"

#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(revision_command)

namespace {

struct told_session : stored_sessions {
  told_session() {
    run("create", joined(s1, {"--state", R"({"topic": "owls", "n": 0})"}));
    run("append",
        s1,
        event_line("a", {{"n", 1}}, {{"id", "e1"}, {"timestamp", 5}})
          + event_line("b",
                       {{"topic", nullptr}, {"user:x", 1}},
                       {{"id", "e2"}, {"timestamp", 6}})
          + event_line("c", {{"n", 2}}, {{"id", "e3"}, {"timestamp", 7}}));
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_session_is_printed_as_it_was, told_session) {
  const auto past = show("get", joined(s1, {"--at", "1"}));
  BOOST_TEST(past["state"] == json({{"topic", "owls"}, {"n", 1}}));
  BOOST_TEST(past["sharedStateIsOfNow"] == false);
  BOOST_TEST(past["revision"] == 1);
  BOOST_TEST(past["isEarlier"] == true);
  BOOST_TEST(past["events"].size() == 1U);
  const auto refused = run("get", joined(s1, {"--at", "4"}));
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors
             == "error: not_found: session press/ann/s1 has no revision 4; its "
                "newest one is 3\n");
  BOOST_TEST(run("get", joined(s1, {"--at", "-1"})).code == 2);
}

BOOST_FIXTURE_TEST_CASE(a_session_goes_back, told_session) {
  const auto done = show("rewind", joined(s1, {"--to", "1"}));
  BOOST_TEST(done["to"] == 1);
  BOOST_TEST(done["revision"] == 4);
  BOOST_TEST(done["keptKeys"] == json({"user:x"}));
  BOOST_TEST(done["compensatedKeys"] == json::array());
  BOOST_TEST(done["cutRuns"] == json::array());
  BOOST_TEST(done["event"]["actions"]["stateDelta"]
             == json({{"topic", "owls"}, {"n", 1}}));
  const auto held = show("get", s1);
  BOOST_TEST(held["state"]
             == json({{"topic", "owls"}, {"n", 1}, {"user:x", 1}}));
  BOOST_TEST(held["events"].size() == 4U);
  BOOST_TEST(show("get", joined(s1, {"--live"}))["events"].size() == 1U);

  // A refused rewind changes nothing.
  const auto expect = [&](const std::vector<std::string>& more, int code) {
    BOOST_TEST(run("rewind", joined(s1, more)).code == code);
  };
  expect({}, 2);
  expect({"--to", "1", "--before", "x"}, 2);
  expect({"--to", "5"}, 1);
  expect({"--before", "x"}, 1);
  expect({"--to", "0", "--expected-revision", "3"}, 1);
  BOOST_TEST(show("get", s1)["revision"] == 4);
}

BOOST_FIXTURE_TEST_CASE(a_session_is_trimmed, told_session) {
  BOOST_TEST(run("trim", joined(s1, {"--to", "4"})).code == 1);
  BOOST_TEST(show("trim", joined(s1, {"--to", "2"}))
             == json({{"firstRevision", 2}, {"deletedEvents", 2}}));
  const auto refused = run("get", joined(s1, {"--at", "1"}));
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(
    refused.errors
    == "error: gone: revision 1 of session press/ann/s1 was deleted by a "
       "trim; its oldest revision is 2\n");
  const auto late = run("follow", joined(s1, {"--from", "0"}));
  BOOST_TEST(late.code == 1);
  BOOST_TEST(late.errors
             == "error: gone: event 1 of session press/ann/s1 was deleted by a "
                "trim; its oldest revision is 2\n");
  const auto values = run("history", joined(s1, {"n"})).output;
  BOOST_TEST(values.starts_with("{\"revision\":2,\"value\":1}\n"));
  BOOST_TEST(values.find("\"value\":2") != std::string::npos);
  const auto moved = run("export", {"--app", "press"});
  BOOST_TEST(moved.code == 0);
  BOOST_TEST(parse_json(moved.output).value()["events"].size() == 1U);
  run("trim", joined(s1, {"--to", "3"}));
  const auto empty
    = parse_json(run("export", {"--app", "press"}).output).value();
  BOOST_TEST(empty["events"].empty());
  BOOST_TEST(empty["state"] == json({{"n", 2}, {"user:x", 1}}));
  BOOST_TEST(
    run("export", {"--app", "press", "--user", "ann", "--session", "s1"}).code
    == 0);
}

BOOST_FIXTURE_TEST_CASE(operations_are_undone_on_request, told_session) {
  const json add{{"op", "add"}, {"key", "app:n"}, {"value", 2}};
  run("append",
      s1,
      json{{"author", "a"}, {"actions", {{"stateOps", {add}}}}}.dump() + '\n');
  BOOST_TEST(show("get", s1)["events"][3]["actions"]["appliedOps"]
             == json::array({add}));
  const auto done = show("rewind", joined(s1, {"--to", "0", "--compensate"}));
  BOOST_TEST(done["keptKeys"] == json({"user:x"}));
  BOOST_TEST(done["compensatedKeys"] == json({"app:n"}));
  BOOST_TEST(
    show("get", s1)["state"]
    == json({{"topic", "owls"}, {"n", 0}, {"user:x", 1}, {"app:n", 0}}));
  BOOST_TEST(run("export", {"--app", "press"}).output.find("appliedOps")
             == std::string::npos);
}

// An exported session has the rewind with its effect.
BOOST_FIXTURE_TEST_CASE(a_rewind_is_exported_and_imported, told_session) {
  show("rewind", joined(s1, {"--to", "1"}));
  const auto exported = run("export", {"--app", "press"}).output;
  BOOST_TEST(run("import", {"--app", "copy"}, exported).code == 0);
  const auto copy = show(
    "get", {"--app", "copy", "--user", "ann", "--session", "s1", "--live"});
  BOOST_TEST(copy["events"].size() == 1U);
  BOOST_TEST(copy["state"]["n"] == 1);
}

BOOST_FIXTURE_TEST_CASE(the_values_of_a_key_are_printed, told_session) {
  const auto values = objects(run("history", joined(s1, {"n"})).output);
  BOOST_TEST(values
             == std::vector<json>({{{"revision", 0}, {"value", 0}},
                                   {{"revision", 1},
                                    {"value", 1},
                                    {"event", "e1"},
                                    {"author", "user"},
                                    {"time", 5.0}},
                                   {{"revision", 3},
                                    {"value", 2},
                                    {"event", "e3"},
                                    {"author", "user"},
                                    {"time", 7.0}}}));
  const auto topic = objects(run("history", joined(s1, {"topic"})).output);
  BOOST_REQUIRE(topic.size() == 2U);
  BOOST_TEST(topic[1]["value"].is_null());
  BOOST_TEST(objects(run("history", joined(s1, {"user:x"})).output).size()
             == 1U);
  BOOST_TEST(run("history", joined(s1, {"none"})).output == "");
  const auto refused = run("history", joined(s1, {"temp:x"}));
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors.starts_with("error: invalid_argument: "));
}

BOOST_FIXTURE_TEST_CASE(revisions_and_sessions_are_compared, told_session) {
  const auto between = show("diff", joined(s1, {"--at", "1"}));
  BOOST_TEST(
    between["keys"]
    == json::parse(
      R"([{"key":"n","before":1,"after":2},{"key":"topic","before":"owls"},
          {"key":"user:x","after":1}])"));
  BOOST_TEST(between["eventsBefore"].empty());
  BOOST_TEST(between["eventsAfter"].size() == 2U);
  BOOST_TEST(between["eventsAfter"][0]["id"] == "e2");
  const auto back = show("diff", joined(s1, {"--at", "3", "--to", "0"}));
  BOOST_TEST(back["eventsBefore"].size() == 3U);
  BOOST_TEST(back["eventsAfter"].empty());

  run("create",
      {"--app",
       "press",
       "--user",
       "ann",
       "--session",
       "s2",
       "--state",
       R"({"n": 2, "own": true})"});
  const auto other = show("diff", joined(s1, {"--with", "s2"}));
  BOOST_TEST(other["keys"] == json::parse(R"([{"key":"own","after":true}])"));
  BOOST_TEST(run("diff", joined(s1, {"--with", "s3"})).code == 1);
  BOOST_TEST(run("diff", s1).code == 2);
}

BOOST_FIXTURE_TEST_CASE(a_session_is_forked, told_session) {
  const auto fork = show("fork", joined(s1, {"--at", "2", "--as", "retry"}));
  BOOST_TEST(fork["id"] == "retry");
  BOOST_TEST(fork["revision"] == 3);
  BOOST_TEST(fork["state"] == json({{"n", 1}, {"user:x", 1}}));
  BOOST_REQUIRE(fork["events"].size() == 3U);
  BOOST_TEST(fork["events"][0]["id"] == "e1");
  BOOST_TEST(fork["events"][1]["id"] == "e2");
  const auto origin = fork["events"][2]["actions"]["agentState"]["forkedFrom"];
  BOOST_TEST(origin["session"] == "s1");
  BOOST_TEST(origin["revision"] == 2);
  const auto again = run("fork", joined(s1, {"--as", "retry"}));
  BOOST_TEST(again.code == 1);
  BOOST_TEST(again.errors.starts_with("error: already_exists: "));
  const auto beyond = run("fork", joined(s1, {"--at", "4"}));
  BOOST_TEST(beyond.code == 1);
  BOOST_TEST(beyond.errors.starts_with("error: not_found: "));
  // The parent goes; the fork stays, and is exported whole.
  run("delete", s1);
  const auto exported
    = objects(run("export", {"--app", "press", "--user", "ann"}).output);
  BOOST_REQUIRE(exported.size() == 1U);
  BOOST_TEST(exported[0]["events"].size() == 3U);
}

BOOST_FIXTURE_TEST_CASE(a_fork_and_its_parent_keep_their_artifacts,
                        told_session) {
  const auto place = "file:" + path() + "/files";
  const auto kept = open_artifact_store(place).value();
  const session_key parent("press", "ann", "s1");
  const session_key fork("press", "ann", "retry");
  kept->save(parent, "a.txt", part("owls")).value();
  show("fork", joined(s1, {"--as", "retry", "--artifacts", place}));
  run("delete", joined(s1, {"--artifacts", place}));
  BOOST_TEST(kept->list(parent).value().empty());
  BOOST_TEST(*kept->load(fork, "a.txt").value()->text() == "owls");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
