// Exports of many sessions, of long ones, of sessions that change meanwhile,
// and of damaged ones.

#include "troupe/core/support/sanitized.hpp"
#include "troupe/runtime/runtime.hpp"

#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(session_export)

namespace {

namespace data = boost::unit_test::data;

struct long_session : stored_sessions {
  void fill(int count) const {
    run("create", s1);
    std::string input;
    for (int number = 1; number <= count; ++number)
      input += event_line(std::string(50, 'x'), {{"n", number}});
    run("append", s1, input);
  }

  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    BOOST_REQUIRE(sqlite3_open((path() + "/troupe.db").c_str(), &database)
                  == SQLITE_OK);
    char* reason = nullptr;
    sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &reason);
    BOOST_TEST_REQUIRE(reason == nullptr, reason);
    sqlite3_close(database);
  }
};

/// Sessions s000 to s349. Only a few fit into a pipe.
struct many_sessions : stored_sessions {
  static constexpr int count = 350;

  static std::string id_of(int number) { return fmt::format("s{:03}", number); }

  many_sessions() {
    std::string file;
    for (int number = 0; number < count; ++number)
      file += to_text({{"id", id_of(number)},
                       {"appName", "press"},
                       {"userId", "ann"},
                       // Newer and newer ones, and the oldest ones last.
                       {"lastUpdateTime", (number + 100) % count + 1},
                       {"state", {{"text", std::string(4'000, 'x')}}}})
              + '\n';
    const auto imported = run("import", {}, file);
    BOOST_TEST_REQUIRE(imported.code == 0, imported.errors);
  }

  /// Starts an export that has read its first page, and waits for the reader of
  /// its output.
  std::unique_ptr<program> export_first_page() const {
    auto exporting
      = std::make_unique<program>(command("export", {"--app", "press"}));
    BOOST_REQUIRE(exporting->read_until("\"appName\""));
    return exporting;
  }

  void update(const std::vector<int>& numbers) const {
    auto owners
      = runtime::open({.store = store(), .durability = durability::none})
          .value();
    for (const int number : numbers)
      owners.sessions()
        .append_event(
          {"press", "ann", id_of(number)},
          event_from_json(parse_json(event_line("moved")).value()).value())
        .value();
  }

  static std::vector<json> end(program& exporting) {
    const auto done = exporting.wait();
    BOOST_TEST(done.code == 0, done.errors);
    return objects(done.output);
  }

  static void expect_all_in_order(const std::vector<json>& exported) {
    BOOST_REQUIRE(exported.size() == std::size_t{count});
    for (int number = 0; number < count; ++number)
      BOOST_TEST(exported[static_cast<std::size_t>(number)]["id"]
                 == id_of(number));
  }
};

/// Calls `work` in another process. Its memory does not add to that of this
/// process, which the measured programs inherit at their start.
template <class Work>
void in_another_process(const Work& work) {
  const auto child = ::fork();
  if (child == 0) {
    try {
      work();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  int status = -1;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(status == 0);
}

/// Sessions without events, of some users.
void fill(const std::string& store, int sessions) {
  auto owners
    = runtime::open({.store = store, .durability = durability::none}).value();
  for (int number = 0; number < sessions; ++number)
    owners.sessions()
      .create({"press",
               fmt::format("u{}", number % 7),
               fmt::format("s{}", number * 7'919 % sessions)})
      .then([](const result<session>&) {});
}

std::string entry_damage(const std::string& statement) {
  return statement.substr(0, statement.find('*')) + "fresh_entries"
         + statement.substr(statement.find('*') + 1) + ';'
         + statement.substr(0, statement.find('*')) + "settled_entries"
         + statement.substr(statement.find('*') + 1);
}

// A gap and a repetition, among the first events and after them.
const std::vector<std::string> damages{
  entry_damage("DELETE FROM * WHERE number=3"),
  entry_damage("DELETE FROM * WHERE number=400"),
  entry_damage("UPDATE * SET log=log-1 WHERE number=3"),
  entry_damage("UPDATE * SET log=log-1 WHERE number=400"),
  "DELETE FROM log WHERE session_revision=3",
  "DELETE FROM log WHERE session_revision=400",
  "UPDATE log SET session_revision=3 WHERE session_revision=4",
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_long_session_is_exported_whole, long_session) {
  fill(700);
  const auto exported = run("export", s1);
  BOOST_TEST(exported.code == 0, exported.errors);
  auto shown = show("get", s1);
  shown.erase("revision");
  BOOST_TEST(parse_json(exported.output).value() == shown);
  BOOST_TEST(exported.output == to_text(shown) + '\n');
  BOOST_TEST(run("export", {"--app", "press"}).output == exported.output);
}

BOOST_DATA_TEST_CASE_F(long_session,
                       a_damaged_log_is_never_shown_as_a_good_one,
                       data::make(damages),
                       damage) {
  fill(500);
  execute(damage);
  for (const auto& done :
       {run("get", s1), run("export", s1), run("export", {"--app", "press"})}) {
    BOOST_TEST(done.code == 1);
    BOOST_TEST(done.errors.starts_with("error: corrupt: "), done.errors);
    BOOST_TEST(!contains(done.output, "\n"));
  }
}

// The second line of the export ends inside of a session.
BOOST_FIXTURE_TEST_CASE(a_line_that_is_cut_off_is_refused_by_name,
                        long_session) {
  fill(500);
  run("create", {"--app", "press", "--user", "ann", "--session", "s0"});
  execute(entry_damage("DELETE FROM * WHERE number=400"));
  const auto exported = run("export", {"--app", "press"});
  BOOST_TEST(exported.code == 1);
  const auto written = lines(exported.output);
  BOOST_REQUIRE(written.size() == 2U);
  BOOST_TEST(parse_json(written[0]).has_value());
  BOOST_TEST(!parse_json(written[1]));
  BOOST_TEST(!exported.output.ends_with('\n'));
  const std::string reason = ": malformed JSON: it ends too early\n";
  for (const auto& [text, line] :
       {std::pair(exported.output, "2"),
        std::pair(written[1], "1"),
        std::pair("\n" + written[1] + '\n', "2"),
        std::pair(written[1] + '\n' + written[0] + '\n', "1")}) {
    const auto imported = run("import", {}, text, "copy.db");
    BOOST_TEST(imported.code == 1);
    BOOST_TEST(imported.output == "");
    BOOST_TEST(imported.errors
               == std::string("error: invalid_argument: line ") + line
                    + reason);
  }
  BOOST_TEST(!std::filesystem::exists(path() + "/copy.db"));
}

BOOST_FIXTURE_TEST_CASE(sessions_come_in_the_order_of_their_names,
                        many_sessions) {
  auto exporting = export_first_page();
  expect_all_in_order(end(*exporting));
}

// Sessions of the first and of the last page are updated, while the export
// waits within its first page.
BOOST_FIXTURE_TEST_CASE(a_session_that_is_updated_meanwhile_is_exported_once,
                        many_sessions) {
  auto exporting = export_first_page();
  update({1, count - 1});
  const auto exported = end(*exporting);
  expect_all_in_order(exported);
  // Each as of the moment when its page was read.
  BOOST_TEST(exported[1]["events"].size() == 0U);
  BOOST_TEST(exported.back()["events"].size() == 1U);
}

BOOST_FIXTURE_TEST_CASE(a_session_that_is_created_meanwhile_has_one_place,
                        many_sessions) {
  auto exporting = export_first_page();
  for (const auto* id : {"a", "t"})
    run("create", {"--app", "press", "--user", "ann", "--session", id});
  auto exported = end(*exporting);
  BOOST_TEST(exported.back()["id"] == "t"); // The place of "a" was passed.
  exported.pop_back();
  expect_all_in_order(exported);
}

// The session is removed while the export waits within its line.
BOOST_FIXTURE_TEST_CASE(a_line_has_events_of_one_session_alone, long_session) {
  fill(2'000);
  program exporting(command("export", {"--app", "press"}));
  BOOST_REQUIRE(exporting.read_until("\"events\":[{"));
  run("delete", s1);
  fill(2'000);
  const auto done = exporting.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors
             == "error: not_found: session press/ann/s1 was deleted while it "
                "was read\n");
  BOOST_TEST(!contains(done.output, "\n"));
}

// The session is replaced while the export waits within an earlier line of its
// page.
BOOST_FIXTURE_TEST_CASE(a_line_has_state_and_events_of_one_session,
                        many_sessions) {
  constexpr int changed = 90;
  const words key{
    "--app", "press", "--user", "ann", "--session", id_of(changed)};
  run("append", key, event_line("old"));
  auto exporting = export_first_page();
  run("delete", key);
  run("create", joined(key, {"--state", R"({"text": "new"})"}));
  run("append", key, event_line("new"));
  auto exported = end(*exporting);
  // The old session is gone, and the place of the new one was passed.
  BOOST_TEST(exported.size() == std::size_t{count - 1});
  for (const auto& each : exported)
    BOOST_TEST(each["id"] != id_of(changed));
}

BOOST_FIXTURE_TEST_CASE(many_sessions_take_no_memory, stored_sessions) {
  if (is_sanitized)
    return; // A sanitizer keeps memory that was given back.
  std::array<std::size_t, 2> used{};
  for (std::size_t run = 0; run < used.size(); ++run) {
    const int sessions = run == 0 ? 40'000 : 160'000;
    in_another_process(
      [&] { fill(store(fmt::format("{}.db", run)), sessions); });
    const auto exported = run_program({"sessions",
                                       "export",
                                       "--store",
                                       store(fmt::format("{}.db", run)),
                                       "--app",
                                       "press"});
    BOOST_TEST(exported.code == 0, exported.errors);
    BOOST_TEST(std::ranges::count(exported.output, '\n') == sessions);
    used.at(run) = exported.memory_max;
  }
  // 16 bytes for each session would be 1.9 MB. SQLite's cache is full in both.
  BOOST_TEST(used[1] < used[0] + 1'000'000);
}

BOOST_FIXTURE_TEST_CASE(large_events_take_little_memory, long_session) {
  constexpr int count = 200;
  constexpr std::size_t bytes = 900'000;
  in_another_process([&] {
    auto owners
      = runtime::open({.store = store(), .durability = durability::none})
          .value();
    const session_key key{"press", "ann", "s1"};
    owners.sessions().create(key).value();
    for (int number = 0; number < count; ++number)
      owners.sessions()
        .append_event(key, event(user_text(std::string(bytes, 'x'))))
        .value();
  });
  const auto exported = run("export", {"--app", "press"});
  BOOST_TEST(exported.code == 0, exported.errors);
  BOOST_TEST(exported.output.size() > count * bytes);
  if (!is_sanitized)
    BOOST_TEST(exported.memory_max < 120U << 20U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
