// `troupe memory`, and `--memory` of commands that run agents and remove users.

#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <string>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(memory_command)

namespace {

struct remembered : stored_sessions {
  remembered() {
    BOOST_REQUIRE(run("create", s1).code == 0);
    BOOST_REQUIRE(run("append", s1, event_line("My dog is Rex")).code == 0);
  }

  words memory() const { return {"--memory", "sqlite:" + path() + "/m.db"}; }

  ended call(const std::string& name, const words& options) const {
    return run_program(joined(joined({"memory", name}, memory()), options));
  }

  json add() const {
    const auto done = call("add", joined(s1, {"--store", store()}));
    BOOST_TEST(done.code == 0, done.errors);
    return parse_json(done.output).value();
  }

  json search(const std::string& query) const {
    const auto done
      = call("search", {"--app", "press", "--user", "ann", "--query", query});
    BOOST_TEST(done.code == 0, done.errors);
    return parse_json(done.output).value().at("memories");
  }

  const words ann{"--app", "press", "--user", "ann"};
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_session_is_added_found_and_removed, remembered) {
  BOOST_TEST(to_text(add()) == R"({"memories":1})");
  add();
  const auto found = search("dog");
  BOOST_REQUIRE(found.size() == 1U);
  BOOST_TEST(found[0]["session"] == "s1");
  BOOST_TEST(found[0]["author"] == "user");
  BOOST_TEST(found[0]["content"]["parts"][0]["text"] == "My dog is Rex");
  BOOST_TEST(search("cat").empty());
  const auto id = found[0]["id"].get<std::string>();
  const auto other = call("remove", joined(ann, {"--id", id}));
  BOOST_TEST(other.output == "{\"removed\":false}\n");
  const auto one = call("remove", joined(s1, {"--id", id}));
  BOOST_TEST(one.output == "{\"removed\":true}\n");
  BOOST_TEST(search("dog").empty());
  add();
  BOOST_TEST(call("remove", ann).output == "{\"removed\":true}\n");
  BOOST_TEST(search("dog").empty());
  BOOST_TEST(run("get", s1).code == 0);
}

BOOST_FIXTURE_TEST_CASE(wrong_calls_are_refused, remembered) {
  const auto unknown
    = call("add", joined(ann, {"--session", "s9", "--store", store()}));
  BOOST_TEST(unknown.code == 1);
  BOOST_TEST(contains(unknown.errors, "s9"));
  BOOST_TEST(run_program(joined({"memory", "search", "--query", "x"}, ann)).code
             == 2);
  BOOST_TEST(call("remove", {"--app", "press"}).code == 2);
  const auto bad = run_program(
    joined({"memory", "search", "--query", "x", "--memory", "file:x"}, ann));
  BOOST_TEST(bad.code == 1);
  BOOST_TEST(contains(bad.errors, "no known scheme"));
}

BOOST_FIXTURE_TEST_CASE(a_missing_file_is_empty_and_stays_missing, remembered) {
  BOOST_TEST(search("dog").empty());
  BOOST_TEST(call("remove", ann).output == "{\"removed\":false}\n");
  BOOST_TEST(!std::filesystem::exists(path() + "/m.db"));
}

BOOST_FIXTURE_TEST_CASE(the_help_tells_what_the_options_do, remembered) {
  for (const auto* name : {"add", "search", "remove"})
    BOOST_TEST(!contains(run_program({"memory", name, "--help"}).output,
                         "else none are kept"));
  for (const auto* name : {"users", "apps"})
    BOOST_TEST(
      contains(run_program({name, "remove", "--help"}).output, "memory (of"));
  for (const auto* limit : {"0", "-1", "x"}) {
    const auto done
      = call("search", joined(ann, {"--query", "x", "--limit", limit}));
    BOOST_TEST(done.code == 2);
    BOOST_TEST(contains(done.errors, "is not a number of 1 or more"));
  }
}

BOOST_FIXTURE_TEST_CASE(an_agent_file_searches_and_users_go, remembered) {
  add();
  write("replies.json",
        R"({"a": [{"function_calls": [{"name": "load_memory",)"
        R"( "args": {"query": "dog"}}]}, {"text": "done"}]})");
  const auto file = write("agent.yaml",
                          "name: a\nmodel: 'scripted:replies.json'\n"
                          "tools: [load_memory, preload_memory]\n");
  const auto done = run_program(
    joined(joined({"run", file, "--input", "hi", "--output", "json"}, memory()),
           {"--store", store(), "--app", "press", "--user", "ann"}));
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(contains(done.output, "My dog is Rex"));
  const auto removed = run_program(joined(
    joined({"users", "remove", "--yes", "--store", store()}, memory()), ann));
  BOOST_TEST(removed.code == 0, removed.errors);
  BOOST_TEST(search("dog").empty());
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
