// Ctrl-C and SIGTERM end the programs that troupe has started.

#include "program.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(interrupted_programs, *boost::unit_test::timeout(120))

namespace {

namespace data = boost::unit_test::data;

// A folder with agents whose program tells its id and then waits.
struct started_programs : scratch_folder {
  started_programs() {
    ::mkfifo(fifo.c_str(), 0600);
    program_file("waits", "");
    program_file("stubborn", "trap '' TERM\n");
    write("replies.json",
          R"({"asks": [{"function_calls": [{"name": "wait", "args": {}}]}]})");
  }

  // An agent file with the program as its MCP server.
  std::string with_server(const std::string& name) const {
    return write("root_agent.yaml",
                 "name: asks\nmodel: scripted:replies.json\ntools:\n"
                 "- name: McpToolset\n  args:\n    stdio_connection_params:\n"
                 "      server_params: {command: ./"
                   + name + "}\n");
  }

  std::string with_tool(const std::string& name) const {
    return write("root_agent.yaml",
                 "name: asks\nmodel: scripted:replies.json\ntools:\n"
                 "- {name: wait, command: ./"
                   + name + "}\n");
  }

  std::vector<std::string> allowing(std::vector<std::string> line,
                                    const std::string& name) const {
    line.insert(line.end(), {"--allow-command", path() + "/" + name});
    return line;
  }

  // The id of the next program that is started.
  pid_t started() const {
    pid_t told = -1;
    std::ifstream(fifo) >> told;
    return told;
  }

  const std::string fifo = path() + "/started";

private:
  void program_file(const std::string& name, const std::string& begin) const {
    const auto file = write(
      name, "#!/bin/sh\n" + begin + "echo $$ >" + fifo + "\nexec sleep 600\n");
    ::chmod(file.c_str(), 0700);
  }
};

// Returns false if the process still runs after 20 seconds.
bool ends(pid_t process) {
  const int handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (handle < 0)
    return true;
  pollfd waiting{handle, POLLIN, 0};
  const bool has_ended = ::poll(&waiting, 1, 20'000) == 1;
  ::close(handle);
  if (!has_ended)
    ::kill(process, SIGKILL);
  return has_ended;
}

} // namespace

BOOST_DATA_TEST_CASE_F(started_programs,
                       a_signal_during_the_start_ends_the_servers,
                       data::make({SIGINT, SIGTERM})
                         * data::make({"waits", "stubborn"}),
                       signal,
                       name) {
  program running(allowing(
    {"run", with_server(name), "--store", "memory:", "--input", "hi"}, name));
  const auto server = started();
  const auto done = running.end_by(signal);
  BOOST_TEST(ends(server));
  BOOST_TEST(done.code == 128 + signal);
  BOOST_TEST(done.errors
             == "error: cancelled: interrupted before the command started\n");
}

BOOST_FIXTURE_TEST_CASE(other_commands_end_their_servers_as_well,
                        started_programs) {
  const auto agent = with_server("waits");
  for (const auto& line : {std::vector<std::string>{"mcp", agent},
                           std::vector<std::string>{"serve", path()}}) {
    program running(allowing(line, "waits"));
    const auto server = started();
    BOOST_TEST(running.end_by(SIGINT).code == 130);
    BOOST_TEST(ends(server));
  }
}

BOOST_DATA_TEST_CASE_F(started_programs,
                       an_experiment_ends_its_servers_at_its_start,
                       data::make({SIGINT, SIGTERM})
                         * data::make({"waits", "stubborn"}),
                       signal,
                       name) {
  with_server(name);
  const auto planned
    = write("x.yaml", "agent: root_agent.yaml\ninputs: [hi]\nrepeats: 2\n");
  program running(allowing(
    {"experiment", planned, "--store", "sqlite:" + path() + "/x.db"}, name));
  const auto server = started();
  const auto done = running.end_by(signal);
  BOOST_TEST(ends(server));
  BOOST_TEST(done.code == 128 + signal);
  BOOST_TEST(done.output == "");
  BOOST_TEST(done.errors
             == "error: cancelled: interrupted before the command started\n");
  // No run has begun, so nothing has to be removed.
  BOOST_TEST(!std::filesystem::exists(path() + "/x.db"));
}

BOOST_FIXTURE_TEST_CASE(the_second_signal_kills_stubborn_tools,
                        started_programs) {
  program running(allowing(
    {"run", with_tool("stubborn"), "--store", "memory:", "--input", "hi"},
    "stubborn"));
  const auto tool = started();
  running.send(SIGINT);
  const auto done = running.end_by(SIGTERM);
  BOOST_TEST(done.code == 128 + SIGTERM);
  BOOST_TEST(ends(tool));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
