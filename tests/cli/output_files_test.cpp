// The files that commands write: never through a link, and readable by the
// owner alone if they may contain conversations.

#include "stored_sessions.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(files_of_commands)

namespace {

namespace fs = std::filesystem;

struct writing_commands : scratch_folder {
  struct written {
    std::vector<std::string> command; // Without the path, which comes last.
    bool is_private;
  };

  writing_commands() {
    write("replies.json", R"({"echo": ["${input}"]})");
    write("echo.yaml", "name: echo\nmodel: 'scripted:replies.json'\n");
    write("plan.yaml",
          "name: plan\nagent: echo.yaml\nvariants: {a: {}}\n"
          "inputs: [go]\n");
    run_program({"run",
                 "--store",
                 store,
                 "--session",
                 "s",
                 path() + "/echo.yaml",
                 "--input",
                 "go"});
    run_program({"load", "--appends", "5", "--json", path() + "/before"});
  }

  std::vector<written> all() const {
    const std::vector<std::string> run{
      "run", path() + "/echo.yaml", "--store", "memory:", "--input", "go"};
    const std::vector<std::string> trace{
      "trace", "--store", store, "--app", "echo", "--session", "s"};
    const std::vector<std::string> load{"load", "--appends", "5"};
    const std::vector<std::string> experiment{
      "experiment", path() + "/plan.yaml", "--store", "memory:"};
    const std::vector<std::string> compare{
      "load", "compare", path() + "/before", path() + "/before"};
    const auto with = [](std::vector<std::string> command, const char* option) {
      command.emplace_back(option);
      return command;
    };
    return {{with(run, "--record"), true},
            {with(trace, "--json"), true},
            {with(trace, "--html"), true},
            {with(trace, "--svg"), false},
            {with(experiment, "--json"), true},
            {with(experiment, "--html"), true},
            {with(load, "--json"), false},
            {with(load, "--csv"), false},
            {with(load, "--hgrm"), false},
            {with(load, "--html"), false},
            {with(compare, "--json"), false}};
  }

  ended write_to(const written& which, const std::string& file) const {
    auto command = which.command;
    command.push_back(file);
    return run_program(std::move(command));
  }

  const std::string store = "sqlite:" + path() + "/troupe.db";
};

} // namespace

BOOST_FIXTURE_TEST_CASE(are_not_written_through_a_link, writing_commands) {
  const auto target = write("target", "what was there");
  const auto link = path() + "/link";
  fs::create_symlink(target, link);
  for (const auto& which : all()) {
    const auto done = write_to(which, link);
    BOOST_TEST(done.code != 0, which.command.front());
    BOOST_TEST(contains(done.errors, "symbolic link"), done.errors);
    BOOST_TEST(fs::file_size(target) == 14U);
  }
}

BOOST_FIXTURE_TEST_CASE(may_be_the_standard_output, writing_commands) {
  for (const auto& which : all()) {
    const auto done = write_to(which, "/dev/stdout");
    BOOST_TEST(done.code == 0, done.errors);
    BOOST_TEST(done.output.size() > 0U);
  }
}

BOOST_FIXTURE_TEST_CASE(are_for_their_owner_where_they_hold_what_was_said,
                        writing_commands) {
  for (const auto& which : all()) {
    const auto file = write("written", "what was there");
    fs::permissions(file, static_cast<fs::perms>(0644));
    const auto done = write_to(which, file);
    BOOST_TEST(done.code == 0, done.errors);
    BOOST_TEST(static_cast<unsigned>(fs::status(file).permissions())
                 == (which.is_private ? 0600U : 0644U),
               which.command.front() << " " << which.command.back());
  }
}

BOOST_FIXTURE_TEST_CASE(are_not_the_same_file, writing_commands) {
  const auto before = write("both", "what was there");
  for (auto command : {all()[1].command, all()[4].command, all()[6].command}) {
    command.insert(command.end(), {before, "--html", path() + "/./both"});
    const auto done = run_program(command);
    BOOST_TEST(done.code == 2, command.front());
    BOOST_TEST(contains(done.errors, "written to twice"), done.errors);
    BOOST_TEST(fs::file_size(before) == 14U);
  }
}

// The program waits for the reader of its output, and is killed there.
BOOST_FIXTURE_TEST_CASE(leave_nothing_when_the_program_is_ended,
                        writing_commands) {
  std::string lines;
  for (int number = 0; number < 2'000; ++number)
    lines
      += event_line("hello", {}, {{"invocationId", std::to_string(number)}});
  const std::vector<std::string> key{
    "--store", store, "--app", "echo", "--session", "s"};
  run_program(
    stored_sessions::joined({"sessions", "append", "--user", "user"}, key),
    lines);
  const auto folder = path() + "/reports";
  fs::create_directory(folder);
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    program tracing(stored_sessions::joined({"trace",
                                             "--json",
                                             folder + "/json",
                                             "--html",
                                             folder + "/html",
                                             "--svg",
                                             folder + "/svg"},
                                            key));
    BOOST_TEST(tracing.read_until("invocation"));
    BOOST_TEST(tracing.end_by(signal).code == 128 + signal);
    BOOST_TEST(fs::is_empty(folder));
  }
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
