// `troupe serve` as a child process.

#include "../server/http_client.hpp"
#include "program.hpp"
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(serve, *boost::unit_test::timeout(120))

namespace {

// A folder with two apps, and the options of a server on it.
struct agent_folder {
  agent_folder() {
    for (const auto* name : {"hello", "other"})
      BOOST_REQUIRE(
        run_program({"init", folder.path() + "/" + name, "--no-program"}).code
        == 0);
  }

  std::vector<std::string> command(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"serve",
                                   folder.path(),
                                   "--port",
                                   "0",
                                   "--store",
                                   "sqlite:" + folder.path() + "/kept.db"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  scratch_folder folder;
};

std::uint16_t port_of(program& served) {
  BOOST_REQUIRE(served.read_until("\n"));
  const auto& line = served.output();
  return static_cast<std::uint16_t>(
    std::stoul(line.substr(line.rfind(':') + 1)));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_folder_of_apps_is_served_until_sigterm) {
  const agent_folder agents;
  const auto path = "/apps/hello/users/ann/sessions";
  {
    program served(agents.command());
    http_client client(port_of(served));
    BOOST_TEST(client.get("/list-apps").data() == json({"hello", "other"}));
    client.post(path, {{"sessionId", "s1"}});
    const auto ran
      = client.post("/run",
                    {{"appName", "hello"},
                     {"userId", "ann"},
                     {"sessionId", "s1"},
                     {"newMessage", {{"parts", {{{"text", "Hello!"}}}}}}});
    BOOST_TEST(ran.status == 200);
    const auto ended = served.end_by(SIGTERM);
    BOOST_TEST(ended.code == 143);
    BOOST_TEST(ended.errors == "");
    BOOST_TEST(ended.output.starts_with("hello, other on http://127.0.0.1:"));
  }
  program again(agents.command());
  http_client client(port_of(again));
  BOOST_TEST(client.get(path + std::string("/s1")).data()["events"].size()
             == 2U);
  BOOST_TEST(again.end_by(SIGINT).code == 130);
}

BOOST_AUTO_TEST_CASE(one_folder_with_an_agent_is_an_app_with_its_name) {
  const agent_folder agents;
  program served({"serve",
                  agents.folder.path() + "/hello",
                  "--port",
                  "0",
                  "--store",
                  "memory:"});
  http_client client(port_of(served));
  BOOST_TEST(client.get("/list-apps").data() == json({"hello"}));
  BOOST_TEST(served.end_by(SIGTERM).code == 143);
}

BOOST_AUTO_TEST_CASE(tokens_are_read_from_a_file_and_never_printed) {
  const agent_folder agents;
  const auto file = agents.folder.path() + "/tokens";
  const std::string token = "secret-0123456789abcdef";
  std::ofstream(file) << token << " ann user\n";
  {
    program served(agents.command({"--token-file", file}));
    http_client client(port_of(served));
    BOOST_TEST(client.get("/list-apps").status == 401);
    client.headers = {"authorization: Bearer " + token};
    BOOST_TEST(client.get("/list-apps").status == 200);
    const auto ended = served.end_by(SIGTERM);
    BOOST_TEST((ended.output + ended.errors).find(token) == std::string::npos);
  }
  std::ofstream(file) << token << " ann king\n";
  const auto refused = run_program(agents.command({"--token-file", file}));
  BOOST_TEST(refused.code == 1);
  BOOST_TEST(refused.errors.find(token) == std::string::npos);
  BOOST_TEST(refused.errors.find("line 1 has a role") != std::string::npos);
  std::ofstream(file) << "";
  BOOST_TEST(run_program(agents.command({"--token-file", file})).code == 1);
}

BOOST_AUTO_TEST_CASE(a_server_that_cannot_start_says_why) {
  const agent_folder agents;
  const auto errors = [&](std::vector<std::string> more) {
    const auto ended = run_program(agents.command(std::move(more)));
    BOOST_TEST(ended.code == 1);
    return ended.errors;
  };
  BOOST_TEST(errors({"--address", "0.0.0.0"})
               .starts_with("error: invalid_argument: others may reach"));
  BOOST_TEST(errors({"--tls-key", "x"})
               .starts_with("error: invalid_argument: TLS needs both"));
  BOOST_TEST(
    errors({"--token-file", "none"}).starts_with("error: not_found: none: "));
  const scratch_folder empty;
  const auto none = run_program({"serve", empty.path()});
  BOOST_TEST(none.code == 1);
  BOOST_TEST(none.errors.find("root_agent.yaml") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_help_begins_with_an_example) {
  const auto shown = run_program({"serve", "--help"});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(shown.output.starts_with(
    "Example:\n  troupe init hello --no-program\n  troupe serve hello"));
}

BOOST_AUTO_TEST_SUITE_END()
