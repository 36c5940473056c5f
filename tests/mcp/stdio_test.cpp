// Servers that are child processes: their tools, calls, failures and ends.

#include "troupe/stores/artifact_store.hpp"

#include "called_tools.hpp"
#include <boost/test/unit_test.hpp>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(mcp_over_stdio)

namespace {

const std::vector<std::string> all_names = {"echo",
                                            "add",
                                            "picture",
                                            "fail",
                                            "hang",
                                            "exit",
                                            "about",
                                            "meet",
                                            "lie",
                                            "flood",
                                            "huge",
                                            "grow",
                                            "odd_name_x"};

// Facts about the server's process.
json about(caller& by, json args = json::object()) {
  return by.call("about", std::move(args))["structuredContent"];
}

bool is_alive(pid_t process) {
  return ::kill(process, 0) == 0 || errno != ESRCH;
}

// False for a process that has ended and was not waited for.
bool is_running(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end != std::string::npos && text.size() > name_end + 2
         && text[name_end + 2] != 'Z';
}

std::string failure_of(const toolset_ptr& set) {
  return reason_of(set->tools({}).get());
}

} // namespace

// -- the list of tools ----

BOOST_AUTO_TEST_CASE(the_tools_of_a_server_are_listed_with_their_schemas) {
  const auto set = mcp_tools(small_server(), fast());
  BOOST_TEST(set->known_tools()->empty());
  const auto tools = set->tools({}).value();
  BOOST_TEST(names_of(tools) == all_names, boost::test_tools::per_element());
  BOOST_TEST(set->known_tools() == tools);
  const auto& echo = tools->front();
  BOOST_TEST(echo.description() == "says it again");
  // Models see whose words these are.
  BOOST_TEST(echo.declaration().description
             == "<<<BEGIN_UNTRUSTED_TOOL_DESCRIPTION>>>\nsays it again\n"
                "<<<END_UNTRUSTED_TOOL_DESCRIPTION>>>");
  BOOST_TEST(code_of(echo.check(json{{"text", "a"}})) == "ok");
  BOOST_TEST(code_of(echo.check(json{{"text", 1}})) == "invalid_argument");
  BOOST_TEST(!echo.parameters().contains("$schema"));
}

BOOST_AUTO_TEST_CASE(pages_of_tools_are_joined) {
  const auto set = mcp_tools(small_server({"--pages"}), fast());
  BOOST_TEST(names_of(set->tools({}).value()) == all_names,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_page_that_comes_again_ends_the_listing) {
  const auto set = mcp_tools(small_server({"--same-page"}), fast());
  BOOST_TEST(failure_of(set).find("same page of tools again")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_filter_and_a_prefix_choose_and_name_the_tools) {
  auto source = small_server();
  source.tool_filter = {"add", "odd.name/x"};
  source.tool_name_prefix = "small";
  const auto tools = mcp_tools(source, fast())->tools({}).value();
  BOOST_TEST(names_of(tools)
               == std::vector<std::string>({"small_add", "small_odd_name_x"}),
             boost::test_tools::per_element());
  source.tool_filter = {"add", "subtract"};
  const auto reason = failure_of(mcp_tools(source, fast()));
  BOOST_TEST(reason.find("no tool 'subtract'") != std::string::npos, reason);
  BOOST_TEST(reason.find("it has: echo, add") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(a_changed_list_reaches_the_next_request_of_the_agent) {
  const auto set = mcp_tools(small_server(), fast());
  caller by(set);
  BOOST_TEST(text_in(by.call("grow")) == "grown");
  while (names_of(set->tools({}).value()).back() != "grown")
    std::this_thread::yield();
  BOOST_TEST(text_in(by.call("grown")) == "new");
}

BOOST_AUTO_TEST_CASE(a_list_that_is_too_old_is_asked_for_again) {
  auto source = small_server();
  source.list_lifetime = std::chrono::milliseconds(1);
  const auto set = mcp_tools(source, fast());
  caller by(set);
  while (about(by)["lists"].get<int>() < 3)
    set->tools({}).value();
}

// -- calls ----

BOOST_AUTO_TEST_CASE(a_result_has_the_blocks_and_the_structured_content) {
  caller by(mcp_tools(small_server(), fast()));
  BOOST_TEST(to_text(by.call("echo", {{"text", "héllo\n"}}))
             == R"({"content":[{"text":"héllo\n","type":"text"}]})");
  BOOST_TEST(to_text(by.call("add", {{"a", 1}, {"b", 2}}))
             == R"({"content":[{"text":"{\"sum\":3}","type":"text"}],)"
                R"("structuredContent":{"sum":3}})");
}

BOOST_AUTO_TEST_CASE(bytes_become_parts_and_artifacts) {
  caller by(mcp_tools(small_server(), fast()));
  const auto response
    = by.call({function_call("", "picture", empty_object())}).front();
  const auto& blocks = response.response.data()["content"];
  const auto name = blocks[0].value("artifact", std::string());
  BOOST_TEST(name == "picture_" + response.id + "_1.png");
  BOOST_TEST(blocks[0]["mimeType"] == "image/png");
  BOOST_TEST(!blocks[0].contains("data"));
  BOOST_TEST(blocks[1]["resource"]["text"] == "words");
  const auto wire = to_json(content("user", {part(response)}));
  BOOST_TEST(to_text(wire["parts"][0]["functionResponse"]["parts"])
             == R"([{"inlineData":{"data":"aGk=","mimeType":"image/png"}}])");
  const auto kept = by.on().artifacts()->load({"a", "u", "s"}, name).value();
  BOOST_REQUIRE(kept);
  BOOST_TEST(blob_of(*kept).value()->bytes == "hi");
}

BOOST_AUTO_TEST_CASE(a_result_with_isError_is_a_failure_of_the_tool) {
  caller by(mcp_tools(small_server(), fast()));
  BOOST_TEST(to_text(by.call("fail"))
             == R"({"error":"tool 'fail' failed: no such city"})");
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_never_reach_the_server) {
  caller by(mcp_tools(small_server(), fast()));
  const auto said = to_text(by.call("echo", {{"text", 7}}));
  BOOST_TEST(said.find("the arguments do not fit: /text") != std::string::npos,
             said);
}

BOOST_AUTO_TEST_CASE(calls_of_one_turn_are_under_way_at_the_same_time) {
  caller by(mcp_tools(small_server(), fast()));
  std::vector<function_call> calls;
  for (const auto* name : {"a", "b", "c", "d", "e"})
    calls.emplace_back("", "meet", value(json{{"count", 5}, {"name", name}}));
  std::string said;
  for (const auto& each : by.call(std::move(calls)))
    said += text_in(each.response.data());
  BOOST_TEST(said == "abcde");
}

BOOST_AUTO_TEST_CASE(answers_with_other_ids_are_dropped) {
  caller by(mcp_tools(small_server(), fast()));
  BOOST_TEST(text_in(by.call("lie")) == "the truth");
  BOOST_TEST(text_in(by.call("echo", {{"text", "next"}})) == "next");
}

BOOST_AUTO_TEST_CASE(a_flood_of_notes_delays_nothing_but_its_own_server) {
  caller by(mcp_tools(small_server(), fast()));
  BOOST_TEST(text_in(by.call("flood")) == "done");
}

BOOST_AUTO_TEST_CASE(requests_of_the_server_are_answered) {
  caller by(mcp_tools(small_server(), fast()));
  const auto answers = about(by)["answers"];
  BOOST_REQUIRE(answers.size() == 2U);
  BOOST_TEST(to_text(answers[0]) == R"({"id":1,"jsonrpc":"2.0","result":{}})");
  BOOST_TEST(answers[1]["id"] == "r");
  BOOST_TEST(answers[1]["error"]["code"] == -32601);
}

BOOST_AUTO_TEST_CASE(a_time_limit_cancels_the_call_at_the_server) {
  auto source = small_server();
  source.call_timeout = std::chrono::milliseconds(50);
  caller by(mcp_tools(source, fast()));
  const auto said = to_text(by.call("hang"));
  BOOST_TEST(said.find("no answer within 50 ms") != std::string::npos, said);
  while (about(by)["cancelled"].empty())
    std::this_thread::yield();
}

BOOST_AUTO_TEST_CASE(progress_without_end_does_not_extend_the_time_limit,
                     *boost::unit_test::timeout(60)) {
  auto options = fast();
  std::atomic<int> told{0};
  options.on_progress = [&told](const mcp_progress&) { ++told; };
  auto source = small_server();
  source.call_timeout = std::chrono::milliseconds(500);
  caller by(mcp_tools(source, options));
  const auto said = to_text(by.call("hang", {{"tells", true}}));
  BOOST_TEST(said.find("no answer within 500 ms") != std::string::npos, said);
  BOOST_TEST(told.load() > 1);
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
}

BOOST_AUTO_TEST_CASE(a_run_that_is_cancelled_cancels_its_call_at_the_server,
                     *boost::unit_test::timeout(60)) {
  auto options = fast();
  std::promise<void> called;
  options.on_progress = [&called](const mcp_progress&) { called.set_value(); };
  const auto set = mcp_tools(small_server(), options);
  caller by(set);
  by.on().sessions().create({"a", "u", "other"}).value();
  script replies;
  replies["asker"]
    = {{.function_calls = {function_call("", "hang", empty_object())}}};
  const auto asker
    = llm({.name = "asker",
           .model = std::make_shared<scripted_model>(std::move(replies)),
           .toolsets = {set}});
  auto running = by.on().run(asker, {"a", "u", "other"}, user_text("call"));
  called.get_future().get();
  running.cancel();
  BOOST_TEST(code_of(running.wait().get()) == "cancelled");
  while (about(by)["cancelled"].empty())
    std::this_thread::yield();
}

BOOST_AUTO_TEST_CASE(progress_is_told_with_the_name_of_the_tool) {
  auto options = fast();
  std::promise<mcp_progress> told;
  options.on_progress
    = [&told](const mcp_progress& progress) { told.set_value(progress); };
  auto source = small_server();
  source.tool_name_prefix = "p";
  source.call_timeout = std::chrono::milliseconds(100);
  caller by(mcp_tools(source, options));
  by.call("p_hang");
  const auto progress = told.get_future().get();
  BOOST_TEST(progress.tool == "p_hang");
  BOOST_TEST(progress.done == 1);
  BOOST_TEST(progress.total.value() == 4);
  BOOST_TEST(progress.message == "a quarter");
}

BOOST_AUTO_TEST_CASE(tools_that_may_destroy_ask_the_user) {
  auto source = small_server();
  source.require_confirmation = mcp_confirmation::destructive;
  const auto tools = mcp_tools(source, fast())->tools({}).value();
  BOOST_TEST(!(*tools)[0].options().require_confirmation.can_hold());
  BOOST_TEST((*tools)[1].options().require_confirmation.can_hold());
}

// On the connection's thread it would wait for itself.
BOOST_AUTO_TEST_CASE(a_callback_after_a_call_may_wait_for_the_server) {
  const auto set = mcp_tools(small_server(), fast());
  caller by(set);
  std::size_t count = 0;
  by.after_tool.emplace_back([&](const tool&,
                                 const json&,
                                 tool_context&,
                                 const json&) -> std::optional<json> {
    count = set->tools({}).value()->size();
    return std::nullopt;
  });
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
  BOOST_TEST(count == all_names.size());
}

// -- versions ----

BOOST_AUTO_TEST_CASE(the_stateless_version_is_spoken_where_it_is_known) {
  caller by(mcp_tools(small_server({"--stateless"}), fast()));
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
  // There was no `initialize`, so the server has asked nothing.
  BOOST_TEST(about(by)["answers"].empty());
}

BOOST_AUTO_TEST_CASE(a_stateless_server_tells_changes_to_a_subscription) {
  const auto set
    = mcp_tools(small_server({"--stateless", "--subscriptions"}), fast());
  caller by(set);
  by.call("grow");
  while (names_of(set->tools({}).value()).back() != "grown")
    std::this_thread::yield();
  BOOST_TEST(about(by)["subscriptions"] == 1);
}

BOOST_AUTO_TEST_CASE(a_subscription_that_ends_is_made_again) {
  const auto set
    = mcp_tools(small_server({"--stateless", "--subscriptions"}), fast());
  caller by(set);
  by.call("unsubscribe");
  while (about(by)["subscriptions"] != 2)
    std::this_thread::yield();
  by.call("grow");
  while (names_of(set->tools({}).value()).back() != "grown")
    std::this_thread::yield();
}

BOOST_AUTO_TEST_CASE(a_server_without_subscriptions_is_asked_once) {
  caller by(mcp_tools(small_server({"--stateless"}), fast()));
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
  BOOST_TEST(about(by)["subscriptions"] == 0);
}

BOOST_AUTO_TEST_CASE(a_server_that_ends_at_the_probe_is_started_again) {
  caller by(mcp_tools(small_server({"--ends-at-probe"}), fast()));
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
}

BOOST_AUTO_TEST_CASE(an_unknown_version_is_refused) {
  const auto set = mcp_tools(small_server({"--version", "1999-01-01"}), fast());
  const auto reason = failure_of(set);
  BOOST_TEST(reason.find("speaks version '1999-01-01'") != std::string::npos,
             reason);
  const auto older
    = mcp_tools(small_server({"--version", "2024-11-05"}), fast());
  BOOST_TEST(failure_of(older) == "");
}

BOOST_AUTO_TEST_CASE(a_version_that_was_chosen_is_the_only_one) {
  auto options = fast();
  options.version = mcp_version::stateless;
  BOOST_TEST(failure_of(mcp_tools(small_server({"--stateless"}), options))
             == "");
  options.version = mcp_version::handshake;
  BOOST_TEST(failure_of(mcp_tools(small_server({"--stateless"}), options))
               .find("no version in _meta")
             != std::string::npos);
}

// -- failures ----

BOOST_AUTO_TEST_CASE(a_program_that_does_not_exist_is_named) {
  mcp_source source;
  source.command = "no-such-program-of-troupe";
  BOOST_TEST(failure_of(mcp_tools(source, fast()))
             == "the program 'no-such-program-of-troupe' cannot be started: No "
                "such file or directory");
}

BOOST_AUTO_TEST_CASE(a_server_that_ends_costs_its_calls_and_starts_again) {
  caller by(mcp_tools(small_server(), fast()));
  const auto first = about(by)["pid"].get<pid_t>();
  const auto said = to_text(by.call("exit"));
  BOOST_TEST(said.find("has ended with exit status 3; it wrote: small server "
                       "is ready\\nout of paper")
               != std::string::npos,
             said);
  BOOST_TEST(about(by)["pid"].get<pid_t>() != first);
  BOOST_TEST(!is_alive(first));
}

BOOST_AUTO_TEST_CASE(calls_beside_one_that_ends_the_server_fail_with_it) {
  caller by(mcp_tools(small_server(), fast()));
  const auto answers
    = by.call({function_call("", "hang", empty_object()),
               function_call("", "exit", value(json{{"hangs", 1}}))});
  for (const auto& each : answers)
    BOOST_TEST(to_text(each.response.data()).find("exit status 3")
               != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_given_up) {
  auto source = small_server({"--mute"});
  source.start_timeout = std::chrono::milliseconds(100);
  const auto reason = failure_of(mcp_tools(source, fast()));
  BOOST_TEST(reason.find("has not started within 100 ms") != std::string::npos,
             reason);
}

BOOST_AUTO_TEST_CASE(waiting_for_a_server_can_be_stopped) {
  const auto set = mcp_tools(small_server({"--mute"}), fast());
  std::stop_source stop;
  std::promise<result<tool_list>> answered;
  set->tools(stop.get_token()).then([&answered](result<tool_list> found) {
    answered.set_value(std::move(found));
  });
  stop.request_stop();
  BOOST_TEST(code_of(answered.get_future().get()) == "cancelled");
  BOOST_TEST(code_of(set->tools(stop.get_token()).get()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_message_over_the_limit_ends_the_connection_alone) {
  auto options = fast();
  options.message_bytes_max = std::size_t{64} << 10U;
  caller by(mcp_tools(small_server(), options));
  const auto said = to_text(by.call("huge", {{"bytes", 100'000}}));
  BOOST_TEST(said.find("more than 65536 bytes") != std::string::npos, said);
  BOOST_TEST(text_in(by.call("echo", {{"text", "again"}})) == "again");
}

BOOST_AUTO_TEST_CASE(a_list_over_the_limit_is_an_error) {
  auto options = fast();
  options.message_bytes_max = std::size_t{64} << 10U;
  const auto reason = failure_of(mcp_tools(small_server({"--wordy"}), options));
  BOOST_TEST(reason.find("more than 65536 bytes") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(each_failure_doubles_the_wait_before_the_next_start) {
  mcp_source source;
  source.command = "no-such-program-of-troupe";
  mcp_options options;
  options.connects_at_once = false;
  options.restart_first = std::chrono::milliseconds(20);
  options.restart_longest = std::chrono::milliseconds(80);
  const auto set = mcp_tools(source, options);
  for (const int least : {0, 20, 40, 80, 80}) {
    const auto begin = std::chrono::steady_clock::now();
    BOOST_TEST(failure_of(set) != "");
    const auto waited = std::chrono::steady_clock::now() - begin;
    BOOST_TEST((waited >= std::chrono::milliseconds(least)), least);
  }
}

BOOST_AUTO_TEST_CASE(a_result_that_no_event_can_hold_is_a_failure) {
  caller by(mcp_tools(small_server(), fast()));
  const auto said = to_text(by.call("huge", {{"bytes", 600'000}}));
  BOOST_TEST(said.find("at most 262144 are allowed") != std::string::npos,
             said);
}

BOOST_AUTO_TEST_CASE(text_that_is_no_message_is_skipped) {
  caller by(mcp_tools(small_server({"--greets"}), fast()));
  BOOST_TEST(text_in(by.call("echo", {{"text", "a"}})) == "a");
}

BOOST_AUTO_TEST_CASE(a_source_without_a_place_is_refused) {
  BOOST_TEST(code_thrown_by([] { mcp_tools({}); }) == "invalid_argument");
  auto both = small_server();
  both.url = "https://example.com/mcp";
  BOOST_TEST(code_thrown_by([&] { mcp_tools(both); }) == "invalid_argument");
  mcp_source odd;
  odd.url = "file:///etc/passwd";
  BOOST_TEST(code_thrown_by([&] { mcp_tools(odd); }) == "invalid_argument");
}

// -- the process ----

BOOST_AUTO_TEST_CASE(a_program_gets_its_folder_and_few_variables) {
  auto source = small_server();
  source.folder = "/";
  source.env = {{"OWN", "1"}};
  source.passed_variables = {"NAMED"};
  auto options = fast();
  options.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "NAMED" || name == "SECRET" || name == "HOME")
      return "the " + name;
    return std::nullopt;
  };
  caller by(mcp_tools(source, options));
  const auto held = [&by](const char* name) {
    return to_text(about(by, {{"variable", name}})["variable"]);
  };
  BOOST_TEST(held("OWN") == "\"1\"");
  BOOST_TEST(held("NAMED") == "\"the NAMED\"");
  BOOST_TEST(held("HOME") == "\"the HOME\"");
  BOOST_TEST(held("SECRET") == "null");
  BOOST_TEST(about(by)["folder"] == "/");
  source.passed_variables = {"UNSET"};
  BOOST_TEST(code_thrown_by([&] { mcp_tools(source, options); })
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_program_inherits_no_descriptor_but_three) {
  const int mine = ::dup(STDERR_FILENO);
  caller by(mcp_tools(small_server(), fast()));
  BOOST_TEST(to_text(about(by)["open"]) == "[0,1,2]");
  ::close(mine);
}

BOOST_AUTO_TEST_CASE(a_program_ends_with_the_last_copy_of_its_set) {
  auto set = mcp_tools(small_server(), fast());
  pid_t process = 0;
  {
    caller by(set);
    process = about(by)["pid"].get<pid_t>();
    BOOST_TEST(is_alive(process));
  }
  set = nullptr;
  BOOST_TEST(!is_alive(process));
  BOOST_TEST(::waitpid(-1, nullptr, WNOHANG) == -1);
}

BOOST_AUTO_TEST_CASE(a_program_that_does_not_want_to_end_is_killed) {
  auto set = mcp_tools(small_server({"--stubborn", "--child"}), fast());
  pid_t process = 0;
  pid_t child = 0;
  {
    caller by(set);
    const auto facts = about(by);
    process = facts["pid"].get<pid_t>();
    child = facts["child"].get<pid_t>();
    BOOST_TEST(is_running(child));
  }
  set = nullptr;
  BOOST_TEST(!is_alive(process));
  while (is_running(child))
    std::this_thread::yield();
}

BOOST_AUTO_TEST_SUITE_END()
