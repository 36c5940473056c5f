// The password of a store's address: no command shows it, at any place in the
// address, and in any malformed address.

#include "../stores/postgres_server.hpp"
#include "asking_agent.hpp"
#include "stored_sessions.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(password_of_a_store)

namespace {

namespace data = boost::unit_test::data;

using words = std::vector<std::string>;

// The password of each address contains these two words.
constexpr std::array secret_words = {"horse", "staple"};

const words addresses = {
  "postgres://ann:horse-staple@127.0.0.1:1/x",
  "postgres://ann:horse-staple@127.0.0.1:1,127.0.0.1:2/x?sslmode=disable",
  "postgres://ann:horse%40staple@127.0.0.1:1/x",
  "postgres://ann:horse%2Fstaple@127.0.0.1:1/x",
  "postgres://ann:horse%3Fstaple@127.0.0.1:1/x",
  "postgres://ann:horse%20staple@127.0.0.1:1/x",
  "postgres://ann:horse%0Astaple@127.0.0.1:1/x",
  "postgres://127.0.0.1:1/x?user=ann&password=horse%26b%3Dstaple",
  "postgres://127.0.0.1:1/x?user=ann&password=horse%0Astaple",
  "postgresql://ann:horse-staple@127.0.0.1:1/x",
  "postgresql://127.0.0.1:1/x?password=horse-staple&user=ann",
  "mysql://ann:horse%2Fstaple@127.0.0.1/x",
  "redis://:horse%20staple@127.0.0.1",
  "host=127.0.0.1 password=horse%20staple user=ann",
  "postgres://ann:horse?staple@127.0.0.1:1/x",
  "postgres://ann:horse:staple@127.0.0.1:1/x",
  "postgres://127.0.0.1:1/x?user=ann&password=horse-staple",
  "postgres:///x?host=/nowhere&sslpassword=horse-staple",
  "postgres:///x?host=/nowhere&p%61ssword=horse-staple",
  "postgres://127.0.0.1:1/x?password=horse&staple",
  "postgres://ann:horse-staple@127.0.0.1:port/x",
  "postgres://ann:horse-staple@127.0.0.1:123456/x",
  "postgres://ann:horse-staple@[::1/x",
  "postgres://ann:horse@staple@127.0.0.1/x",
  "postgres://ann:horse/staple@127.0.0.1/x",
  "postgres://ann:1/horse-staple@127.0.0.1/x",
  "postgres://ann:horse staple@127.0.0.1:1/x",
  "postgres://ann:horse'staple@127.0.0.1/x%",
  "postgres://ann:horse-staple/x",
  "postgres://ann:horse-staple%40127.0.0.1/x",
  "postgres://127.0.0.1:1,ann:horse-staple",
  "postgres:/ann:horse-staple@127.0.0.1/x",
  "postgres:ann:horse-staple@127.0.0.1/x",
  "postgres:host=127.0.0.1 password='horse staple' user=ann",
  "postgresql://ann:horse-staple@127.0.0.1/x",
  "POSTGRES://ann:horse-staple@127.0.0.1/x",
  "mysql://ann:horse-staple@127.0.0.1/x",
  "host=127.0.0.1 password='horse staple' user=ann",
  "ann:horse-staple@127.0.0.1",
  "sqlite:postgres://ann:horse-staple@127.0.0.1/x",
};

bool shows_secret(const std::string& text) {
  return std::ranges::any_of(
    secret_words, [&text](const char* word) { return contains(text, word); });
}

// Returns the content of the files of a folder, except databases.
std::string files_of(const std::string& folder) {
  std::string text;
  for (const auto& each :
       std::filesystem::recursive_directory_iterator(folder)) {
    std::ifstream source(each.path(), std::ios::binary);
    text.append(std::istreambuf_iterator<char>(source), {});
  }
  return text;
}

// Files for the commands that need some.
struct all_commands : scratch_folder {
  const std::string agent
    = write("echo.yaml", "name: echo\nmodel: 'scripted:replies.json'\n");
  const std::string plan = write("plan.yaml",
                                 "name: plan\nagent: echo.yaml\n"
                                 "variants: {a: {}}\ninputs: [go]\n");

  all_commands() { write("replies.json", R"({"echo": ["${input}"]})"); }

  /// Every command that takes `--store`, with every file that it writes.
  std::vector<words> commands() const {
    const auto file = [this](const char* name) { return path() + "/" + name; };
    const words session{"--app", "press", "--session", "s"};
    const auto of_session = [&session](words front) {
      front.insert(front.end(), session.begin(), session.end());
      return front;
    };
    return {{"run", agent, "--input", "go", "--record", file("record")},
            of_session({"sessions", "create"}),
            of_session({"sessions", "get"}),
            of_session({"sessions", "append"}),
            of_session({"sessions", "export"}),
            of_session({"sessions", "delete"}),
            {"sessions", "list", "--app", "press"},
            {"sessions", "import"},
            {"store", "check"},
            of_session({"trace",
                        "--json",
                        file("trace"),
                        "--html",
                        file("page"),
                        "--svg",
                        file("picture")}),
            {"load",
             "--appends",
             "10",
             "--json",
             file("load"),
             "--html",
             file("load.html")},
            {"experiment",
             plan,
             "--json",
             file("runs"),
             "--html",
             file("runs.html")}};
  }

  void expect_nothing_shown(const words& command) const {
    const auto done = run_program(command);
    const auto shown = done.output + done.errors;
    BOOST_TEST(!shows_secret(shown), command.front() << ": " << shown);
    BOOST_TEST(done.code != 0, command.front());
  }
};

} // namespace

BOOST_DATA_TEST_CASE_F(all_commands,
                       is_shown_by_no_command_that_fails,
                       data::make(addresses),
                       address) {
  for (auto command : commands()) {
    command.insert(command.end(), {"--store", address});
    expect_nothing_shown(command);
  }
  expect_nothing_shown({"load", "sweep", "--vary", "store=" + address});
  BOOST_TEST(!shows_secret(files_of(path())));
  // At a place for other arguments, only the form of the text shows that it is
  // an address.
  if (address.starts_with("ann:"))
    return;
  expect_nothing_shown({"run", agent, "--input", "go", address});
  expect_nothing_shown({"run", address, "--input", "go"});
  expect_nothing_shown({"run", agent, "--artifacts", address, "--input", "go"});
  expect_nothing_shown({"run", agent, "--model", address, "--input", "go"});
  expect_nothing_shown({address});
}

BOOST_FIXTURE_TEST_CASE(is_shown_by_no_command_that_works, all_commands) {
  const postgres_server server;
  const auto given = server.url() + "&password=horse-staple";
  auto user_info = server.url();
  user_info.replace(user_info.find('@'), 1, ":horse-staple@");
  for (const auto& address : {given, user_info}) {
    for (auto command : commands()) {
      command.insert(command.end(), {"--store", address});
      const auto done = run_program(command);
      BOOST_TEST(!shows_secret(done.output + done.errors),
                 done.output << done.errors);
    }
    const auto swept = run_program({"load",
                                    "sweep",
                                    "--duration",
                                    "0.01",
                                    "--vary",
                                    "store=" + address,
                                    "--json",
                                    path() + "/sweep"});
    BOOST_TEST(swept.code == 0, swept.errors);
    BOOST_TEST(!shows_secret(swept.output + swept.errors), swept.output);
  }
  const auto written = files_of(path());
  BOOST_TEST(!shows_secret(written), written);
  for (const auto* name : {"record", "load", "load.html", "runs", "runs.html"})
    BOOST_TEST(std::filesystem::file_size(path() + "/" + name) > 0U);
}

BOOST_FIXTURE_TEST_CASE(is_left_out_of_the_command_that_answers_a_run,
                        all_commands) {
  const postgres_server server;
  const auto file = write_asking_agent(*this);
  auto address = server.url();
  address.replace(address.find('@'), 1, ":horse-staple@");
  const auto asked = run_program({"run",
                                  "--store",
                                  address + "&sslpassword=horse",
                                  "--session",
                                  "s",
                                  file,
                                  "--input",
                                  "go"});
  BOOST_TEST(!shows_secret(asked.errors), asked.errors);
  BOOST_TEST(contains(asked.errors, "--store '" + server.url() + "' --app"),
             asked.errors);
  BOOST_TEST(contains(asked.errors, "PGPASSWORD"), asked.errors);
  const auto id = question_of(asked);
  const auto done = run_program({"run",
                                 "--store",
                                 server.url(),
                                 "--session",
                                 "s",
                                 file,
                                 "--model",
                                 "scripted:" + path() + "/done.json",
                                 "--answer",
                                 id + "={\"confirmed\": false}"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(!contains(done.errors, "waiting"), done.errors);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
