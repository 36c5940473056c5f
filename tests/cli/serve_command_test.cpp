// `troupe serve` as a child process.

#include "../models/http_server.hpp"
#include "../server/http_client.hpp"
#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

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

std::uint16_t port_in(const std::string& line) {
  return static_cast<std::uint16_t>(
    std::stoul(line.substr(line.rfind(':') + 1)));
}

std::uint16_t port_of(program& served) {
  BOOST_REQUIRE(served.read_until("\n"));
  return port_in(served.output());
}

// A run that waits for its model.
struct held_run : scratch_folder {
  held_run()
    : model({hold(),
             say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n"),
             say(chunk("data: {\"model\": \"m\", \"choices\": "
                       "[{\"index\": 0, \"delta\": {\"content\": "
                       "\"owl\"}}]}\n\ndata: {\"choices\": "
                       "[{\"index\": 0, \"delta\": {}, "
                       "\"finish_reason\": \"stop\"}]}\n\n"
                       "data: [DONE]\n\n")),
             say("0\r\n\r\n")}) {
    write("root_agent.yaml",
          fmt::format("name: writer\nmodel: {{name: 'openai:m', base_url: "
                      "'{}'}}\n",
                      model.url("/v1")));
  }

  std::vector<std::string> command(const std::string& grace) const {
    return {
      "serve", path(), "--port", "0", "--store", "memory:", "--grace", grace};
  }

  // Starts the run, and returns once it waits.
  void start(http_client& client) {
    client.post("/apps/writer/users/ann/sessions", {{"sessionId", "s1"}});
    client.send_request("POST",
                        "/run",
                        R"({"userId": "ann", "sessionId": "s1", "newMessage": )"
                        R"({"parts": [{"text": "go"}]}})");
    model.wait_for_requests(1);
  }

  http_server model;
};

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

BOOST_AUTO_TEST_CASE(lines_are_objects_if_that_is_asked_for) {
  const agent_folder agents;
  program served(agents.command({"--log-format", "json"}));
  BOOST_REQUIRE(served.read_until("\n"));
  const auto started = parse_json(served.output()).value();
  BOOST_TEST(started.at("severity") == "INFO");
  BOOST_TEST(started.at("apps") == json({"hello", "other"}));
  const std::string address = started.at("address");
  BOOST_TEST(started.at("message") == "hello, other on " + address);
  const std::string time = started.at("time");
  BOOST_TEST(time.size() == std::string("2026-11-28T07:00:00.123Z").size());
  BOOST_TEST(time.ends_with("Z"));
  const http_client client(port_in(address));
  const auto ended = served.end_by(SIGTERM);
  BOOST_TEST(ended.code == 143);
  const auto stopped = parse_json(ended.errors).value();
  BOOST_TEST(stopped.at("severity") == "INFO");
  BOOST_TEST(stopped.at("signal") == SIGTERM);
}

BOOST_AUTO_TEST_CASE(an_error_is_an_object_if_that_is_asked_for) {
  const scratch_folder empty;
  const auto ended
    = run_program({"serve", empty.path(), "--log-format", "json"});
  BOOST_TEST(ended.code == 1);
  const auto line = parse_json(ended.errors).value();
  BOOST_TEST(line.at("severity") == "ERROR");
  BOOST_TEST(line.at("code") == "not_found");
}

BOOST_AUTO_TEST_CASE(commits_are_counted_and_steps_are_timed) {
  const agent_folder agents;
  program served(agents.command());
  http_client client(port_of(served));
  client.post("/apps/hello/users/ann/sessions", {{"sessionId", "s1"}});
  const auto ran
    = client
        .post("/run",
              {{"appName", "hello"},
               {"userId", "ann"},
               {"sessionId", "s1"},
               {"newMessage", {{"parts", {{{"text", "Hello!"}}}}}}})
        .data();
  BOOST_TEST(ran[0]["customMetadata"]["troupe"]["steps"][0]["kind"] == "model");
  BOOST_TEST(client.get("/figures").data()["store"]["changes"] == 3);
  BOOST_TEST(served.end_by(SIGTERM).code == 143);
}

BOOST_AUTO_TEST_CASE(what_was_acknowledged_survives_a_kill) {
  const agent_folder agents;
  const std::string path = "/apps/hello/users/ann/sessions";
  {
    program served(agents.command());
    http_client client(port_of(served));
    client.post(path, {{"sessionId", "s1"}});
    for (int number = 1; number <= 100; ++number)
      BOOST_TEST(client
                   .post(path + "/s1/events",
                         {{"author", "user"},
                          {"actions", {{"stateDelta", {{"n", number}}}}}})
                   .status
                 == 200);
    // These are under way when the process ends.
    for (int number = 101; number <= 110; ++number)
      client.send_request("PATCH", path + "/s1", R"({"stateDelta": {"m": 1}})");
    BOOST_TEST(served.end_by(SIGKILL).code == 128 + SIGKILL);
  }
  program again(agents.command());
  http_client client(port_of(again));
  const auto kept = client.get(path + "/s1").data();
  BOOST_TEST(kept["state"]["n"] == 100);
  BOOST_TEST(kept["events"].size() >= 100U);
  BOOST_TEST(again.end_by(SIGTERM).code == 143);
}

BOOST_FIXTURE_TEST_CASE(a_run_ends_within_the_grace_after_sigterm, held_run) {
  program served(command("100"));
  http_client client(port_of(served));
  start(client);
  served.send(SIGTERM);
  // The port is closed first.
  for (bool is_open = true; is_open;)
    try {
      http_client(port_in(served.output()));
    } catch (const std::runtime_error&) {
      is_open = false;
    }
  model.let_go();
  const auto answer = client.read();
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.body.find("owl") != std::string::npos);
  BOOST_TEST(served.wait().code == 143);
}

BOOST_FIXTURE_TEST_CASE(a_run_is_cancelled_after_the_grace, held_run) {
  program served(command("0"));
  http_client client(port_of(served));
  start(client);
  served.send(SIGTERM);
  const auto answer = client.read();
  BOOST_TEST(answer.status == 503);
  BOOST_TEST(answer.header("troupe-error") == "cancelled");
  BOOST_TEST(served.wait().code == 143);
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

namespace {

// A folder of apps, each with an MCP server that is a shell script.
struct apps_with_servers : scratch_folder {
  apps_with_servers() {
    ::mkfifo((path() + "/meeting").c_str(), 0600);
    write("replies.json", "{}");
    write("guide.yaml", "name: guide\nmodel: scripted:replies.json\n");
  }

  void add(const std::string& name, const std::string& script) {
    std::filesystem::create_directory(path() + "/" + name);
    const auto program = write(name + "/server", "#!/bin/sh\n" + script);
    ::chmod(program.c_str(), 0700);
    write(name + "/root_agent.yaml",
          "name: root\nmodel: scripted:../replies.json\ntools:\n"
          "- name: McpToolset\n  args:\n    stdio_connection_params:\n"
          "      server_params: {command: ./server}\n      timeout: 20\n");
    words_.insert(words_.end(), {"--allow-command", program});
  }

  std::vector<std::string> command() const {
    auto made = words_;
    made.insert(made.begin(),
                {"serve", path(), "--port", "0", "--store", "memory:"});
    return made;
  }

  const std::string in_folder = "cd " + path() + "\n";
  const std::string serve_guide
    = "exec " + std::string(TROUPE_PROGRAM) + " mcp guide.yaml\n";

private:
  std::vector<std::string> words_;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(servers_of_apps_start_at_the_same_time,
                        apps_with_servers) {
  // Each one waits for the other.
  add("a", in_folder + "echo >meeting\n" + serve_guide);
  add("b", in_folder + "read word <meeting\n" + serve_guide);
  program served(command());
  BOOST_TEST(served.read_until(" on http"));
  const auto ended = served.end_by(SIGTERM);
  BOOST_TEST(ended.errors == "");
  BOOST_TEST(ended.code == 143);
}

BOOST_FIXTURE_TEST_CASE(the_first_app_that_fails_is_the_error,
                        apps_with_servers) {
  // A server that ends at the first request is started once more.
  add("a",
      in_folder + "[ -e a/ran ] || read word <meeting\n: >a/ran\nexit 3\n");
  add("b", in_folder + "[ -e b/ran ] || echo >meeting\n: >b/ran\nexit 4\n");
  const auto ended = run_program(command());
  BOOST_TEST(ended.code == 1);
  BOOST_TEST(ended.errors
             == "error: invalid_argument: " + path()
                  + "/a/root_agent.yaml:4: the MCP server '" + path()
                  + "/a/server' has ended with exit status 3\n");
}

BOOST_AUTO_TEST_CASE(a_low_limit_of_open_files_is_raised) {
  const agent_folder agents;
  rlimit present{};
  BOOST_REQUIRE(::getrlimit(RLIMIT_NOFILE, &present) == 0);
  BOOST_REQUIRE(present.rlim_max >= 1'000);
  const rlimit low{64, present.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  program served(agents.command());
  ::setrlimit(RLIMIT_NOFILE, &present);
  const auto port = port_of(served);
  std::vector<http_client> clients;
  for (int count = 0; count < 100; ++count)
    clients.emplace_back(port);
  for (auto& each : clients)
    BOOST_TEST(each.get("/health").status == 200);
}

BOOST_AUTO_TEST_CASE(the_help_begins_with_an_example) {
  const auto shown = run_program({"serve", "--help"});
  BOOST_TEST(shown.code == 0);
  BOOST_TEST(shown.output.starts_with(
    "Example:\n  troupe init hello --no-program\n  troupe serve hello"));
}

BOOST_AUTO_TEST_SUITE_END()
