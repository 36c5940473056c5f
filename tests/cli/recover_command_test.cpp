// `troupe run --recover` and `troupe runs`, with a program that is killed by a
// tool of its own agent.

#include "troupe/core/json.hpp"

#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(recover_command)

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A sequence of three agents over a file. The second one calls a tool, which
// kills the program in its first call.
struct killed_run : scratch_folder {
  killed_run() {
    const auto tool = write("die.sh",
                            "#!/bin/sh\n"
                            "cd \"$(dirname \"$0\")\"\n"
                            "echo call >> calls\n"
                            "if [ \"$(wc -l < calls)\" -eq 1 ]; then\n"
                            "  kill -9 $PPID\n"
                            "  exit 1\n"
                            "fi\n"
                            "echo '{\"done\": true}'\n");
    ::chmod(tool.c_str(), 0700);
    write("replies.json",
          R"({"first": ["one"],
              "second": [{"function_calls": [{"name": "die"}]}, "two"],
              "third": ["three"]})");
    // The program that goes on starts the script anew: the second agent has
    // called its tool already.
    write("later.json", R"({"second": ["two"], "third": ["three"]})");
    root_ = write("root.yaml",
                  "agent_class: SequentialAgent\nname: work\nsub_agents:\n"
                  "- {name: first, model: 'scripted:replies.json', "
                  "output_key: made}\n"
                  "- name: second\n  model: 'scripted:replies.json'\n"
                  "  tools:\n"
                  "  - {name: die, description: works, command: [./die.sh], "
                  "parameters: {type: object}}\n"
                  "- {name: third, model: 'scripted:replies.json'}\n");
  }

  std::string file() const { return path() + "/runs.db"; }

  ended run(std::vector<std::string> more) const {
    std::vector<std::string> all{"run",
                                 "--store",
                                 "sqlite:" + file(),
                                 "--allow-command",
                                 path() + "/die.sh",
                                 "--session",
                                 "s",
                                 root_};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(std::move(all));
  }

  ended recover(const std::string& which,
                const std::string& recoveries_max = "3") const {
    return run({"--recover",
                which,
                "--recoveries-max",
                recoveries_max,
                "--model",
                "scripted:" + path() + "/later.json",
                "--end-state"});
  }

  json list() const {
    const auto listed
      = run_program({"runs", "--store", "sqlite:" + file(), "--json"});
    BOOST_TEST_REQUIRE(listed.code == 0, listed.errors);
    return parse_json(listed.output).value().at("runs");
  }

private:
  std::string root_;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_killed_run_is_listed_and_goes_on, killed_run) {
  const auto killed = run({"--input", "go"});
  BOOST_TEST(killed.code == 128 + SIGKILL);
  BOOST_TEST(contains(killed.output, "first: one"), killed.output);
  const auto open = list();
  BOOST_TEST_REQUIRE(open.size() == 1U);
  BOOST_TEST(open[0].at("agent") == "work");
  // The process has ended on this machine, so the lease does not count.
  BOOST_TEST(open[0].at("free") == true);
  const auto refused = recover("last", "0");
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(contains(refused.errors, "limit_exceeded"), refused.errors);
  const auto done = recover("last");
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(!contains(done.output, "first:"), done.output);
  BOOST_TEST(contains(done.output, "second: two"), done.output);
  BOOST_TEST(contains(done.output, "third: three"), done.output);
  BOOST_TEST(contains(done.output, R"("made":"one")"), done.output);
  BOOST_TEST(list().empty());
  const auto again = recover(open[0].at("run").get<std::string>());
  BOOST_TEST(again.code == 1);
  BOOST_TEST(contains(again.errors, "it has ended"), again.errors);
}

BOOST_FIXTURE_TEST_CASE(a_recovery_needs_a_session_and_an_open_run,
                        killed_run) {
  const auto nothing = run({"--recover", "last"});
  BOOST_TEST(nothing.code == 1);
  BOOST_TEST(contains(nothing.errors, "not_found"), nothing.errors);
  const auto both = run({"--recover", "last", "--answer", "x={}"});
  BOOST_TEST(both.code == 2);
  const auto unnamed = run_program(
    {"run", "--store", "memory:", path() + "/root.yaml", "--recover", "last"});
  BOOST_TEST(unnamed.code == 2);
  BOOST_TEST(contains(unnamed.errors, "--recover needs --session"),
             unnamed.errors);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
