#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(store_command)

namespace {

struct checked_store : stored_sessions {
  ended check(const std::string& file = "troupe.db") const {
    return run_program({"store", "check", "--store", store(file)});
  }

  void fill() const {
    run("create", joined(s1, {"--state", R"({"a": 1, "app:b": 2})"}));
    std::string input;
    for (int number = 0; number < 500; ++number)
      input += event_line(std::string(100, 'x'), {{"user:n", number}});
    run("append", s1, input);
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(says_why_it_refuses_a_check) {
  BOOST_TEST(run_program({"store"}).code == 2);
  BOOST_TEST(run_program({"store", "mend"}).code == 2);
  BOOST_TEST(run_program({"store", "check", "--app", "a"}).code == 2);
  BOOST_TEST(run_program({"store", "check", "--store", "redis:x"}).code == 2);
  const auto done = run_program({"store", "check", "--store", "sqlite:a/../b"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: invalid_argument: "), done.errors);
}

BOOST_AUTO_TEST_CASE(a_store_in_memory_is_sound) {
  const auto done = run_program({"store", "check", "--store", "memory:"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors == "the store is sound\n");
}

BOOST_AUTO_TEST_CASE(help_of_a_check_has_an_example) {
  const auto help = run_program({"store", "check", "--help"});
  BOOST_TEST(help.code == 0);
  BOOST_TEST(contains(help.output, "troupe store check --store"), help.output);
}

BOOST_FIXTURE_TEST_CASE(a_filled_store_is_sound, checked_store) {
  fill();
  const auto done = check();
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors == "the store is sound\n");
}

BOOST_FIXTURE_TEST_CASE(a_store_that_is_not_there_is_sound, checked_store) {
  BOOST_TEST(check().code == 0);
  BOOST_TEST(!std::filesystem::exists(path() + "/troupe.db"));
}

BOOST_FIXTURE_TEST_CASE(a_terminal_is_left_without_a_line_of_progress,
                        checked_store) {
  fill();
  program shown({"store", "check", "--store", store()},
                program::screen::terminal);
  const auto done = shown.wait();
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output.ends_with("the store is sound\r\n"), done.output);
}

BOOST_FIXTURE_TEST_CASE(damage_is_told_of, checked_store) {
  fill();
  const auto file = path() + "/troupe.db";
  const auto size = std::filesystem::file_size(file);
  BOOST_REQUIRE(size > 16'384U);
  {
    // Overwrites all but the first pages, which identify the kind of file.
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekp(16'384);
    bytes << std::string(size - 16'384, '\x5a');
  }
  const auto done = check();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: corrupt: "), done.errors);
}

BOOST_FIXTURE_TEST_CASE(a_file_of_another_kind_is_refused, checked_store) {
  write("notes.db", std::string(10'000, 'n'));
  const auto done = check("notes.db");
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors.starts_with("error: "), done.errors);
}

// -- vacuum ----

namespace {

// A store with sessions of `ann` and of `zebra`, who is removed.
struct removed_user : checked_store {
  removed_user() {
    fill();
    run("create", joined(hers, {"--state", R"({"user:likes": "stripes"})"}));
    std::string input;
    for (int number = 0; number < 500; ++number)
      input += event_line("I like stripes", {{"app:n", number}, {"n", number}});
    run("append", hers, input);
    removed = run_program({"users",
                           "remove",
                           "--store",
                           store(),
                           "--app",
                           "press",
                           "--user",
                           "zebra",
                           "--yes"});
  }

  ended vacuum(const std::string& file = "troupe.db") const {
    return run_program({"store", "vacuum", "--store", store(file)});
  }

  /// True if any file of the store has these bytes.
  bool holds(const std::string& bytes) const {
    for (const auto& file : std::filesystem::directory_iterator(path())) {
      std::ifstream source(file.path(), std::ios::binary);
      std::ostringstream text;
      text << source.rdbuf();
      if (contains(text.str(), bytes))
        return true;
    }
    return false;
  }

  const words hers{"--app", "press", "--user", "zebra", "--session", "hers"};
  ended removed;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_vacuum_leaves_nothing_of_a_removed_user,
                        removed_user) {
  BOOST_REQUIRE(removed.code == 0);
  const auto others = run("get", s1).output;
  BOOST_TEST(holds("zebra"));
  const auto before = std::filesystem::file_size(path() + "/troupe.db");
  const auto done = vacuum();
  BOOST_TEST(done.code == 0, done.errors);
  for (const auto* const rest : {"zebra", "stripes", "hers", "likes"})
    BOOST_TEST(!holds(rest), rest);
  const auto after = std::filesystem::file_size(path() + "/troupe.db");
  BOOST_TEST(after < before);
  BOOST_TEST(done.output
             == std::to_string(after)
                  + " bytes, before: " + std::to_string(before) + "\n");
  // The others keep all, also that which she has written for them.
  BOOST_TEST(run("get", s1).output == others);
  BOOST_TEST(contains(others, R"("app:n":499)"), others);
  BOOST_TEST(check().code == 0);
  // The name can be used again.
  BOOST_TEST(run("create", hers).code == 0);
  BOOST_TEST(vacuum().code == 0);
  BOOST_TEST(contains(run("get", hers).output, "hers"));
}

BOOST_FIXTURE_TEST_CASE(a_vacuum_needs_the_file_for_itself, removed_user) {
  program other(command("follow", joined(s1, {"--from", "0"})));
  BOOST_REQUIRE(other.read_until("499"));
  const auto refused = vacuum();
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors
             == "error: conflict: vacuum: another program uses " + path()
                  + "/troupe.db; close it, and try again\n");
  other.end_by(SIGTERM);
  // Nothing is changed for the programs that come next.
  BOOST_TEST(check().code == 0);
  BOOST_TEST(vacuum().code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_vacuum_is_for_sqlite_files, removed_user) {
  const auto of = [](const std::string& address) {
    return run_program({"store", "vacuum", "--store", address}).errors;
  };
  BOOST_TEST(of("memory:")
             == "error: invalid_argument: vacuum: memory: has no "
                "file\n");
  BOOST_TEST(
    of("postgres://host/database")
    == "error: invalid_argument: vacuum: this is for SQLite files; use "
       "VACUUM FULL in the database\n");
  BOOST_TEST(vacuum("none.db").errors
             == "error: not_found: vacuum: there is no file " + path()
                  + "/none.db\n");
  BOOST_TEST(!std::filesystem::exists(path() + "/none.db"));
  write("notes.db", std::string(10'000, 'n'));
  BOOST_TEST(vacuum("notes.db").code == 1);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
