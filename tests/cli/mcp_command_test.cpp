// `troupe mcp` as a child process: raw messages, and as a server of
// `troupe run`.

#include "troupe/core/json.hpp"

#include "asking_agent.hpp"
#include "program.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <sstream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(mcp_command, *boost::unit_test::timeout(120))

namespace {

const std::string begin
  = R"({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": )"
    R"({"protocolVersion": "2025-11-25"}})"
    "\n";

std::string call_of(const std::string& tool, const json& args) {
  const json message{{"jsonrpc", "2.0"},
                     {"id", 1},
                     {"method", "tools/call"},
                     {"params", {{"name", tool}, {"arguments", args}}}};
  return to_text(message) + "\n";
}

// A folder with the agent `guide`, which repeats its request.
struct guide : scratch_folder {
  guide() {
    write("replies.json",
          R"({"guide": ["You ask ${input}"],
              "slow": [{"text": "late", "latency_ms": 3600000}]})");
    agent = write("guide.yaml",
                  "name: guide\ndescription: Knows cities.\n"
                  "model: scripted:replies.json\n");
    slow = write("slow.yaml", "name: slow\nmodel: scripted:replies.json\n");
  }

  std::string agent;
  std::string slow;
};

// The messages on stdout, each in a line of its own.
std::vector<json> messages_of(const ended& done) {
  std::vector<json> found;
  std::istringstream lines(done.output);
  for (std::string line; std::getline(lines, line);)
    found.push_back(parse_json(line).value());
  return found;
}

} // namespace

BOOST_AUTO_TEST_CASE(an_agent_file_is_a_tool_until_stdin_ends) {
  const guide in;
  const auto done = run_program(
    {"mcp", in.agent}, begin + call_of("guide", {{"request", "where?"}}));
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.errors == "");
  const auto told = messages_of(done);
  BOOST_REQUIRE(told.size() == 2U);
  BOOST_TEST(told[0]["result"]["serverInfo"]["name"] == "guide");
  BOOST_TEST(told[1]["result"]["content"][0]["text"] == "You ask where?");
}

BOOST_AUTO_TEST_CASE(both_ends_are_troupe) {
  const guide in;
  in.write("asks.json",
           R"({"asker": [{"function_calls": [{"name": "guide",
               "args": {"request": "the way"}}]}, "done"]})");
  const auto asker = in.write("asker.yaml",
                              "name: asker\nmodel: scripted:asks.json\n"
                              "tools:\n- name: McpToolset\n  args:\n"
                              "    stdio_connection_params:\n"
                              "      server_params:\n        command: "
                                + std::string(TROUPE_PROGRAM)
                                + "\n        args: [mcp, " + in.agent + "]\n");
  const auto done = run_program({"run",
                                 asker,
                                 "--store",
                                 "memory:",
                                 "--allow-command",
                                 TROUPE_PROGRAM,
                                 "--input",
                                 "go"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output.find("You ask the way") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_session_goes_on_in_the_store) {
  const guide in;
  const auto store = "sqlite:" + in.path() + "/kept.db";
  for (int run = 0; run < 2; ++run) {
    const auto done = run_program(
      {"mcp", in.agent, "--store", store, "--user", "ann", "--app", "tours"},
      begin + call_of("guide", {{"request", "x"}, {"session", "trip"}}));
    BOOST_TEST(done.code == 0);
    BOOST_TEST(messages_of(done)[1]["result"]["_meta"]["troupe/session"]
               == "trip");
  }
  const auto seen = run_program({"sessions",
                                 "get",
                                 "--store",
                                 store,
                                 "--app",
                                 "tours",
                                 "--user",
                                 "ann",
                                 "--session",
                                 "trip"});
  BOOST_TEST(parse_json(seen.output).value()["events"].size() == 4U);
}

BOOST_AUTO_TEST_CASE(a_question_names_the_way_to_answer) {
  const scratch_folder in;
  const auto asks = write_asking_agent(in);
  const auto done
    = run_program({"mcp", asks, "--store", "sqlite:" + in.path() + "/kept.db"},
                  begin + call_of("asks", {{"request", "go"}}));
  BOOST_TEST(done.code == 0);
  const auto result = messages_of(done)[1]["result"];
  BOOST_TEST(result["isError"] == true);
  BOOST_TEST(result["content"][0]["text"].get<std::string>().find(
               "asks if it may call exit_loop({})")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(signals_end_it_after_the_grace_period) {
  for (const int signal : {SIGTERM, SIGINT}) {
    const guide in;
    program served({"mcp", in.slow, "--grace", "0"});
    served.write(begin + call_of("slow", {{"request", "x"}}));
    BOOST_REQUIRE(served.read_until("serverInfo"));
    const auto done = served.end_by(signal);
    BOOST_TEST(done.code == 128 + signal);
    BOOST_TEST(done.errors == "");
    for (const auto& each : messages_of(done))
      BOOST_TEST(each.contains("result"));
  }
}

BOOST_AUTO_TEST_CASE(a_client_that_leaves_ends_it) {
  const guide in;
  program served({"mcp", in.agent});
  served.write(begin);
  BOOST_REQUIRE(served.read_until("serverInfo"));
  served.close_output();
  served.write(call_of("guide", {{"request", "x"}}));
  const auto done = served.wait();
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors == "");
}

BOOST_AUTO_TEST_CASE(a_wrong_command_line_leaves_stdout_empty) {
  const guide in;
  const auto missing = run_program({"mcp", in.path() + "/none.yaml"});
  BOOST_TEST(missing.code == 1);
  BOOST_TEST(missing.output == "");
  BOOST_TEST(missing.errors.starts_with("error: "));
  const auto user = run_program({"mcp", in.agent, "--user", " "});
  BOOST_TEST(user.code == 1);
  BOOST_TEST(user.output == "");
  BOOST_TEST(run_program({"mcp"}).code == 2);
  BOOST_TEST(run_program({"mcp", in.agent, "--calls-max", "0"}).code == 2);
}

BOOST_AUTO_TEST_SUITE_END()
