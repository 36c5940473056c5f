// Tools that are programs: their input, output, failures and ends.

#include "troupe/agents/command_tool.hpp"

#include "../stores/temporary_folder.hpp"
#include "tool_caller.hpp"
#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(command_tools)

namespace {

using namespace std::chrono_literals;

json properties(std::initializer_list<const char*> names) {
  auto made = json::object();
  for (const auto* name : names)
    made[name] = json::object();
  return json{{"type", "object"}, {"properties", std::move(made)}};
}

// A tool that is a script of the shell, with further words of its command line.
command_tool_options shell(const std::string& script,
                           std::vector<std::string> words = {}) {
  command_tool_options made;
  made.name = "program";
  made.command = {"sh", "-c", script, "sh"};
  made.command.insert(made.command.end(), words.begin(), words.end());
  made.end_grace = 100ms;
  return made;
}

json result_of(const std::string& script, json args = json::object()) {
  return tool_caller(command_tool(shell(script))).call(std::move(args));
}

std::string failure_of(const command_tool_options& options,
                       json args = json::object()) {
  return tool_caller(command_tool(options)).failure(std::move(args));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

// The ids that scripts have written to a file, one per line; waits for `count`.
std::vector<pid_t> ids_in(const std::filesystem::path& file,
                          std::size_t count) {
  for (;;) {
    std::vector<pid_t> ids;
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line) && !lines.eof();)
      ids.push_back(std::stoi(line));
    if (ids.size() >= count)
      return ids;
    std::this_thread::yield();
  }
}

void wait_for_end(pid_t process) {
  while (is_alive(process))
    std::this_thread::yield();
}

// Nothing is left to wait for: neither a running child nor a zombie.
bool has_children() {
  return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

} // namespace

// -- input and output ----

BOOST_AUTO_TEST_CASE(a_program_gets_the_arguments_as_json_on_stdin) {
  BOOST_TEST(result_of("cat", {{"city", "Rome"}, {"days", 3}})
             == json({{"city", "Rome"}, {"days", 3}}));
}

BOOST_AUTO_TEST_CASE(output_that_is_no_json_object_is_text) {
  BOOST_TEST(result_of("echo 12") == json({{"result", "12"}}));
  BOOST_TEST(result_of("echo '[1]'") == json({{"result", "[1]"}}));
  BOOST_TEST(result_of("printf '{\"a\": 1'")
             == json({{"result", "{\"a\": 1"}}));
  BOOST_TEST(result_of(":") == json({{"result", ""}}));
  BOOST_TEST(result_of("printf 'a\\377b\\n\\n'")
             == json({{"result",
                       "a\xEF\xBF\xBD"
                       "b"}}));
}

BOOST_AUTO_TEST_CASE(each_argument_stays_one_word_of_the_command) {
  auto options = shell("printf '[%s]' \"$@\"; cat",
                       {"{city}", "--days={days}", "{{city}}", "{print $1}"});
  options.parameters = properties({"city", "days"});
  tool_caller by(command_tool(options));
  BOOST_TEST(by.call({{"city", "a b; $(id) `id`\n\"'"}, {"days", 3}})["result"]
             == "[a b; $(id) `id`\n\"'][--days=3][{city}][{print $1}]");
  // A word without its argument is left out.
  BOOST_TEST(by.call({{"city", json({1, nullptr})}})["result"]
             == "[[1,null]][{city}][{print $1}]");
}

BOOST_AUTO_TEST_CASE(an_argument_does_not_become_an_option) {
  auto options = shell("printf '[%s]' \"$@\"", {"{city}"});
  options.parameters = properties({"city"});
  BOOST_TEST(contains(failure_of(options, {{"city", "--version"}}),
                      "'city' begins with '-'"));
  BOOST_TEST(contains(failure_of(options, {{"city", -5}}), "begins with '-'"));
  BOOST_TEST(
    contains(failure_of(options, {{"city", std::string("a\0b", 3)}}), "NUL"));
  options.command = {"sh", "-c", "printf '[%s]' \"$@\"", "sh", "--", "{city}"};
  BOOST_TEST(
    tool_caller(command_tool(options)).call({{"city", "--version"}})["result"]
    == "[--][--version]");
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_never_reach_the_program) {
  const temporary_folder in;
  auto options = shell("touch " + (in.path() / "ran").string());
  options.parameters = json{{"type", "object"}, {"required", {"city"}}};
  BOOST_TEST(contains(failure_of(options), "the arguments do not fit"));
  BOOST_TEST(!std::filesystem::exists((in.path() / "ran")));
}

BOOST_AUTO_TEST_CASE(a_program_need_not_read_its_input) {
  BOOST_TEST(result_of("echo ok", {{"text", std::string(500'000, 'x')}})
             == json({{"result", "ok"}}));
}

BOOST_AUTO_TEST_CASE(a_program_gets_few_variables_and_no_descriptor) {
  ::setenv("TROUPE_TEST_PASSED", "1", 1);
  ::setenv("TROUPE_TEST_HELD", "1", 1);
  const int open = ::open("/dev/null", O_RDONLY);
  BOOST_REQUIRE(open > 2);
  auto options = shell("env; echo fds; ls /proc/self/fd | wc -l; pwd");
  options.env = {{"LEVEL", "a=b c"}};
  options.passed_variables = {"TROUPE_TEST_PASSED"};
  options.folder = "/usr";
  const auto said
    = tool_caller(command_tool(options)).call()["result"].get<std::string>();
  ::close(open);
  BOOST_TEST(contains(said, "LEVEL=a=b c\n"), said);
  BOOST_TEST(contains(said, "TROUPE_TEST_PASSED=1\n"));
  BOOST_TEST(contains(said, "PATH="));
  BOOST_TEST(!contains(said, "TROUPE_TEST_HELD"), said);
  // `ls` opens the folder.
  BOOST_TEST(contains(said, "fds\n4\n/usr"), said);
}

// -- failures ----

BOOST_AUTO_TEST_CASE(an_exit_status_is_an_error_with_the_end_of_stderr) {
  const auto reason = failure_of(shell("echo half; echo no city >&2; exit 3"));
  BOOST_TEST(reason
               == "tool 'program' failed: the program 'sh' has ended with exit "
                  "status 3; it wrote: no city",
             reason);
  BOOST_TEST(contains(failure_of(shell("echo out; exit 1")), "wrote: out"));
  BOOST_TEST(failure_of(shell("seq 100000 >&2; exit 1")).size() < 4'096U);
}

BOOST_AUTO_TEST_CASE(a_signal_is_an_error) {
  BOOST_TEST(contains(failure_of(shell("kill -9 $$")), "ended with signal 9"));
}

BOOST_AUTO_TEST_CASE(a_program_that_cannot_be_started_is_an_error) {
  auto options = shell("");
  options.command = {"/nonexistent/program"};
  BOOST_TEST(
    contains(failure_of(options),
             "'/nonexistent/program' cannot be started: No such file"));
  options = shell("");
  options.folder = "/nonexistent";
  BOOST_TEST(contains(failure_of(options), "in the folder '/nonexistent'"));
}

BOOST_AUTO_TEST_CASE(a_program_that_floods_its_output_is_ended) {
  const temporary_folder in;
  const auto file = (in.path() / "ids");
  BOOST_TEST(
    contains(failure_of(shell("echo $$ >> " + file.string() + "; exec yes")),
             "has written more than 262144 bytes"));
  BOOST_TEST(!is_alive(ids_in(file, 1).front()));
  // As JSON, each of these bytes has six.
  BOOST_TEST(
    contains(failure_of(shell("head -c 200000 /dev/zero | tr '\\0' '\\1'")),
             "bytes as JSON"));
  // The stderr of a program is read, so that it does not wait.
  BOOST_TEST(result_of("yes | head -c 1000000 >&2; echo ok")["result"] == "ok");
}

BOOST_AUTO_TEST_CASE(options_that_could_never_work_are_refused) {
  const auto code = [](const auto& change) {
    auto options = shell("");
    change(options);
    return code_thrown_by([&] { command_tool(options); });
  };
  using options = command_tool_options;
  BOOST_TEST(code([](options& o) { o.command = {}; }) == "invalid_argument");
  BOOST_TEST(code([](options& o) { o.command = {""}; }) == "invalid_argument");
  BOOST_TEST(code([](options& o) {
               o.command = {"a", "{b}"};
             })
             == "invalid_argument");
  // Without its argument the option would take the next word.
  BOOST_TEST(code([](options& o) {
               o.parameters = {{"properties", {{"b", json::object()}}}};
               o.command = {"a", "-o", "{b}"};
             })
             == "invalid_argument");
  BOOST_TEST(code([](options& o) {
               o.command = {"a", std::string(1, '\0')};
             })
             == "invalid_argument");
  BOOST_TEST(code([](options& o) {
               o.env = {{"A=B", "c"}};
             })
             == "invalid_argument");
  BOOST_TEST(code([](options& o) { o.passed_variables = {"TROUPE_UNSET"}; })
             == "invalid_argument");
  BOOST_TEST(code([](options& o) { o.output_bytes_max = 0; })
             == "invalid_argument");
  BOOST_TEST(code([](options& o) { o.calls_max = 0; }) == "invalid_argument");
  BOOST_TEST(code([](options& o) { o.timeout = 0ms; }) == "invalid_argument");
}

// -- ends ----

BOOST_AUTO_TEST_CASE(a_program_that_hangs_is_ended_with_its_time) {
  const temporary_folder in;
  const auto file = (in.path() / "ids");
  auto options
    = shell("echo $$ >> " + file.string() + "; sleep 1000 & echo $! >> "
            + file.string() + "; wait");
  options.timeout = 300ms;
  BOOST_TEST(!failure_of(options).empty());
  for (const auto id : ids_in(file, 2))
    wait_for_end(id);
}

BOOST_AUTO_TEST_CASE(a_program_that_ignores_sigterm_is_killed) {
  const temporary_folder in;
  const auto file = (in.path() / "ids");
  auto options = shell("trap '' TERM; echo $$ >> " + file.string()
                       + "; while :; do sleep 1000; done");
  options.timeout = 300ms;
  BOOST_TEST(!failure_of(options).empty());
  wait_for_end(ids_in(file, 1).front());
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_ends_its_programs) {
  const temporary_folder in;
  const auto file = (in.path() / "ids");
  tool_caller by(
    {command_tool(shell("echo $$ >> " + file.string() + "; exec sleep 1000"))});
  auto running = by.start({{"", "program", value(json::object())},
                           {"", "program", value(json::object())}});
  const auto ids = ids_in(file, 2);
  running.cancel();
  BOOST_TEST(code_of(running.wait().get()) == "cancelled");
  for (const auto id : ids)
    wait_for_end(id);
}

// The result is there, and the process that the program has left is killed.
BOOST_AUTO_TEST_CASE(a_child_that_keeps_the_output_open_ends_with_its_program) {
  const temporary_folder in;
  const auto file = (in.path() / "ids");
  BOOST_TEST(result_of("sleep 1000 & echo $! >> " + file.string()
                       + "; echo hi")["result"]
             == "hi");
  wait_for_end(ids_in(file, 1).front());
}

BOOST_AUTO_TEST_CASE(no_zombie_and_no_descriptor_is_left) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  tool_caller by(command_tool(shell("cat")));
  by.call();
  const auto before = descriptors();
  by.call_all(std::vector<function_call>(
    64, function_call("", "program", value(json::object()))));
  while (has_children())
    std::this_thread::yield();
  BOOST_TEST(descriptors() == before);
}

// -- calls at the same time ----

// The runtime has one thread for tools. Both programs wait for each other.
BOOST_AUTO_TEST_CASE(programs_run_at_the_same_time_and_hold_no_thread) {
  const temporary_folder in;
  const auto pipe = (in.path() / "pipe").string();
  BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  auto options = shell("if [ \"$1\" = a ]; then echo met > " + pipe
                         + "; else cat " + pipe + "; fi",
                       {"{side}"});
  options.parameters = properties({"side"});
  const auto said = tool_caller(command_tool(options))
                      .call_all({{"", "program", value(json{{"side", "a"}})},
                                 {"", "program", value(json{{"side", "b"}})}});
  BOOST_REQUIRE(said.size() == 2U);
  BOOST_TEST(said[1]["result"] == "met");
}

BOOST_AUTO_TEST_CASE(further_calls_wait_for_their_turn) {
  const temporary_folder in;
  const auto lock = (in.path() / "lock").string();
  auto options = shell("mkdir " + lock + " && sleep 0.01 && rmdir " + lock);
  options.calls_max = 1;
  const auto said
    = tool_caller(command_tool(options))
        .call_all(std::vector<function_call>(
          8, function_call("", "program", value(json::object()))));
  BOOST_TEST(said.size() == 8U);
  for (const auto& each : said)
    BOOST_TEST(!each.contains("error"), to_text(each));
}

BOOST_AUTO_TEST_SUITE_END()
