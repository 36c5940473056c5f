#include "../random.hpp"
#include "../stores/postgres_server.hpp"
#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(session_import)

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

// A session that counts in all scopes.
std::string counting_session(int count) {
  auto events = json::array();
  for (int number = 1; number <= count; ++number)
    events.push_back(
      {{"id", "e" + std::to_string(number)},
       {"author", "user"},
       {"timestamp", number},
       {"actions",
        {{"stateDelta",
          {{"n", number}, {"user:n", number}, {"app:n", number}}}}}});
  return to_text(
           {{"id", "s1"},
            {"appName", "press"},
            {"userId", "ann"},
            {"state", {{"n", count}, {"user:n", count}, {"app:n", count}}},
            {"events", std::move(events)}})
         + '\n';
}

// `address_of(name)` returns the address of a new store.
template <class AddressOf>
void kill_imports(const stored_sessions& in, const AddressOf& address_of) {
  constexpr int count = 6'000;
  constexpr std::size_t kills = 12;
  const json whole = {{"n", count}, {"user:n", count}, {"app:n", count}};
  const words s2{"--app", "press", "--user", "ann", "--session", "s2"};
  const auto file = in.write("one.json", counting_session(count));
  const auto words_of = [](const std::string& name,
                           const std::string& store,
                           const words& options) {
    return stored_sessions::joined({"sessions", name, "--store", store},
                                   options);
  };
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(run_program(words_of("import", address_of("whole"), {file})).code
             == 0);
  const auto needed = std::chrono::duration_cast<std::chrono::microseconds>(
    std::chrono::steady_clock::now() - start);
  random_source random(20'262);
  for (std::size_t kill = 0; kill < kills; ++kill) {
    const auto store = address_of("k" + std::to_string(kill));
    run_program(words_of("create", store, s2));
    program importing(words_of("import", store, {file}));
    // Any moment of the import may be the one at which it is killed.
    std::this_thread::sleep_for(std::chrono::microseconds(
      random.below(static_cast<std::size_t>(needed.count()))));
    importing.send(SIGKILL);
    importing.wait();
    const auto found = run_program(words_of("get", store, in.s1));
    const auto beside
      = parse_json(run_program(words_of("get", store, s2)).output)
          .value()["state"];
    if (found.code == 0) {
      const auto shown = parse_json(found.output).value();
      BOOST_TEST(shown["revision"] == count);
      BOOST_TEST(shown["state"] == whole);
      BOOST_TEST(beside == json({{"user:n", count}, {"app:n", count}}));
      continue;
    }
    BOOST_TEST(found.errors.starts_with("error: not_found: "), found.errors);
    BOOST_TEST(beside == json::object());
    const auto again = run_program(words_of("import", store, {file}));
    BOOST_TEST(again.code == 0, again.errors);
    BOOST_TEST(parse_json(again.output).value()["state"] == whole);
  }
}

} // namespace

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
  BOOST_TEST(!shown.contains("revision")); // Other ADKs refuse unknown fields.
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

BOOST_FIXTURE_TEST_CASE(a_session_of_20000_events_is_imported_whole,
                        stored_sessions) {
  const auto done = run("import", {}, counting_session(20'000));
  BOOST_TEST(done.code == 0, done.errors);
  const auto shown = parse_json(done.output).value();
  BOOST_TEST(shown["revision"] == 20'000);
  BOOST_TEST(shown["state"]
             == json({{"n", 20'000}, {"user:n", 20'000}, {"app:n", 20'000}}));
  BOOST_TEST(show("get", s1)["events"].size() == 20'000U);
  BOOST_TEST(run_program({"store", "check", "--store", store()}).code == 0);
}

// The effects on user and app are read through another session.
BOOST_FIXTURE_TEST_CASE(a_killed_import_leaves_all_or_nothing,
                        stored_sessions) {
  kill_imports(*this, [this](const std::string& name) { return store(name); });
}

BOOST_FIXTURE_TEST_CASE(a_killed_import_into_a_database_leaves_all_or_nothing,
                        stored_sessions) {
  const postgres_server server;
  kill_imports(*this,
               [&server](const std::string& name) { return server.url(name); });
}

BOOST_FIXTURE_TEST_CASE(operations_add_to_what_user_and_app_have,
                        stored_sessions) {
  run("create", joined(s1, {"--state", R"({"user:n": 5, "app:n": 7})"}));
  const auto text
    = to_text({{"id", "s2"},
               {"appName", "press"},
               {"userId", "ann"},
               {"state", {{"n", 1}, {"user:n", 6}, {"app:n", 8}}},
               {"events",
                {{{"author", "user"},
                  {"actions",
                   {{"stateOps",
                     {{{"op", "add"}, {"key", "n"}, {"value", 1}},
                      {{"op", "add"}, {"key", "user:n"}, {"value", 1}},
                      {{"op", "add"}, {"key", "app:n"}, {"value", 1}}}}}}}}}});
  const auto done = run("import", {}, text);
  BOOST_TEST(done.code == 0, done.errors);
  const auto shown = parse_json(done.output).value();
  BOOST_TEST(shown["revision"] == 1);
  BOOST_TEST(shown["state"] == json({{"n", 1}, {"user:n", 6}, {"app:n", 8}}));
}

BOOST_FIXTURE_TEST_CASE(an_import_goes_on_behind_existing_sessions,
                        stored_sessions) {
  run("create", joined(s1, {"--state", R"({"a": 1})"}));
  const std::string file
    = R"({"id": "s1", "appName": "press", "userId": "ann"})"
      "\n"
      R"({"id": "s2", "appName": "press", "userId": "ann"})"
      "\n";
  BOOST_TEST(run("import", {}, file).code == 1);
  const auto done = run("import", {"--skip-existing"}, file);
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(objects(done.output).at(0)["id"] == "s2");
  BOOST_TEST(objects(done.output).size() == 1U);
  BOOST_TEST(show("get", s1)["state"] == json({{"a", 1}}));
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
