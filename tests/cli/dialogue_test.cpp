// `troupe run` on a terminal, as a person uses it: keys are typed into a real
// terminal, and the screen is read.

#include "../models/http_server.hpp"
#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(dialogues, *boost::unit_test::timeout(180))

namespace {

struct dialogue_folder : scratch_folder {
  dialogue_folder() {
    ::setenv("TERM", "xterm", 1);
    write("script.json",
          R"({"echo": ["You said: ${input}"],
              "asks": [{"function_calls": [{"name": "exit_loop"}]}, "done"],
              "rude": [{"content": {"parts": []}, "extra": {
                "errorCode": "SAFETY", "errorMessage": "too rude"}}],
              "slow": [{"text": "late", "latency_ms": 600000}, "early"]})");
    write("echo.yaml",
          "name: echo\nmodel: scripted:script.json\noutput_key: answer\n");
    write("rude.yaml", "name: rude\nmodel: scripted:script.json\n");
    write("slow.yaml", "name: slow\nmodel: scripted:script.json\n");
    write("asks.yaml",
          "name: asks\nmodel: scripted:script.json\n"
          "tools: [{name: exit_loop, require_confirmation: true}]\n");
  }

  program start(const std::string& name,
                std::vector<std::string> more = {}) const {
    std::vector<std::string> words{
      "run", path() + "/" + name + ".yaml", "--store", "memory:"};
    words.insert(words.end(), more.begin(), more.end());
    return program(std::move(words), program::screen::terminal);
  }
};

// Types a line at the next prompt.
void type(program& talk, const std::string& line) {
  BOOST_REQUIRE(talk.read_next("> "));
  talk.write(line);
}

int leave(program& talk) {
  type(talk, "/quit\n");
  return talk.wait().code;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(an_agent_answers_at_a_prompt, dialogue_folder) {
  auto talk = start("echo", {"--session", "s1", "--end-state"});
  BOOST_REQUIRE(talk.read_next("session s1 of app echo; /help"));
  type(talk, "Hello!\n");
  BOOST_REQUIRE(talk.read_next("echo:"));
  BOOST_REQUIRE(talk.read_next(" You said: Hello!"));
  // Changes of the state are quiet.
  BOOST_REQUIRE(talk.read_next("\033[2mecho:    answer = "));
  type(talk, "/state an\n");
  BOOST_REQUIRE(talk.read_next("answer = \"You said: Hello!\""));
  type(talk, "/events 2\n");
  BOOST_REQUIRE(talk.read_next("user: Hello!"));
  type(talk, "/walk\n");
  BOOST_REQUIRE(talk.read_next("there is no command '/walk'"));
  type(talk, "//walk\n");
  BOOST_REQUIRE(talk.read_next("You said: /walk"));
  type(talk, "/rewind x\n");
  BOOST_REQUIRE(talk.read_next("expected a number from 1 on"));
  type(talk, "/rewind 3\n");
  BOOST_REQUIRE(talk.read_next("you have said fewer messages"));
  type(talk, "/rewind\n");
  BOOST_REQUIRE(talk.read_next("took back \"/walk\" and all that came after"));
  type(talk, "/state\n");
  BOOST_REQUIRE(talk.read_next("answer = \"You said: Hello!\""));
  type(talk, "//walk\n");
  BOOST_REQUIRE(talk.read_next("You said: /walk"));
  type(talk, "\x04"); // Ctrl-D.
  BOOST_REQUIRE(talk.read_next(R"({"state":{"answer":"You said: /walk"}})"));
  BOOST_TEST(talk.wait().code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_blocked_answer_is_shown, dialogue_folder) {
  auto talk = start("rude");
  type(talk, "Hello!\n");
  BOOST_REQUIRE(
    talk.read_next("\033[31mrude: failed, SAFETY: too rude\033[0m"));
  type(talk, "/events 1\n");
  BOOST_REQUIRE(talk.read_next("rude: failed, SAFETY: too rude"));
  BOOST_TEST(leave(talk) == 0);
}

// A Ctrl-D counts, too, when it is typed while the agent works.
BOOST_FIXTURE_TEST_CASE(an_early_ctrl_d_leaves_after_the_turn,
                        dialogue_folder) {
  auto talk = start("echo");
  type(talk, "Hello!\n");
  talk.write("\x04");
  BOOST_REQUIRE(talk.read_next("You said: Hello!"));
  BOOST_TEST(talk.wait().code == 0);
}

BOOST_FIXTURE_TEST_CASE(a_line_is_edited_and_found_again, dialogue_folder) {
  auto talk = start("echo");
  // Ctrl-A goes to the begin, Ctrl-E to the end; a letter of two bytes.
  type(talk, "wl\x01o\x05s \u00e4\n");
  BOOST_REQUIRE(talk.read_next("You said: owls \u00e4"));
  type(talk, "\x10 again\n"); // Ctrl-P: the line before.
  BOOST_REQUIRE(talk.read_next("You said: owls \u00e4 again"));
  BOOST_TEST(leave(talk) == 0);
}

BOOST_FIXTURE_TEST_CASE(ctrl_c_ends_the_turn_and_not_the_program,
                        dialogue_folder) {
  auto talk = start("slow");
  type(talk, "half a line\x03");
  BOOST_REQUIRE(talk.read_next("Ctrl-D or /quit ends the dialogue"));
  type(talk, "go\n");
  BOOST_REQUIRE(talk.read_next("running: slow"));
  talk.write("\x03");
  BOOST_REQUIRE(talk.read_next("cancelled"));
  type(talk, "again\n");
  BOOST_REQUIRE(talk.read_next("early"));
  BOOST_TEST(leave(talk) == 0);
}

BOOST_FIXTURE_TEST_CASE(sigterm_ends_the_program, dialogue_folder) {
  auto talk = start("slow");
  BOOST_REQUIRE(talk.read_next("> "));
  talk.send(SIGTERM);
  BOOST_TEST(talk.wait().code == 143);
}

BOOST_FIXTURE_TEST_CASE(a_question_is_answered_with_y_or_n, dialogue_folder) {
  auto talk = start("asks");
  type(talk, "go\n");
  BOOST_REQUIRE(talk.read_next("may this be called? exit_loop({})"));
  BOOST_REQUIRE(talk.read_next("y/n (empty: later)"));
  type(talk, "maybe\n");
  BOOST_REQUIRE(talk.read_next("y/n (empty: later)"));
  type(talk, "n\n");
  BOOST_REQUIRE(talk.read_next("<- exit_loop"));
  BOOST_REQUIRE(talk.read_next("done"));
  BOOST_TEST(leave(talk) == 0);
}

BOOST_AUTO_TEST_CASE(a_node_asks_until_the_answer_fits) {
  program talk({}, program::screen::terminal, TROUPE_ASKING_PROGRAM);
  type(talk, "go\n");
  BOOST_REQUIRE(talk.read_next("How many?"));
  BOOST_REQUIRE(talk.read_next("\"boxes\""));
  type(talk, "some\n");
  BOOST_REQUIRE(talk.read_next("/: "));
  type(talk, "3\n");
  BOOST_REQUIRE(talk.read_next("What colour?"));
  type(talk, "blue\n");
  BOOST_REQUIRE(talk.read_next("Who are you?"));
  BOOST_REQUIRE(talk.read_next("age (integer)"));
  type(talk, "7\n");
  BOOST_REQUIRE(talk.read_next("name (string)"));
  type(talk, "12\n");
  type(talk, "/state\n");
  BOOST_REQUIRE(
    talk.read_next(R"(answers = [3,"blue",{"age":7,"name":"12"}])"));
  BOOST_TEST(leave(talk) == 0);
}

BOOST_FIXTURE_TEST_CASE(a_question_can_be_left_open, dialogue_folder) {
  auto talk = start("asks");
  type(talk, "go\n");
  BOOST_REQUIRE(talk.read_next("y/n (empty: later)"));
  type(talk, "\n");
  BOOST_REQUIRE(talk.read_next("left open; "));
  BOOST_TEST(leave(talk) == 0);
}

BOOST_FIXTURE_TEST_CASE(no_color_means_no_colour, dialogue_folder) {
  ::setenv("NO_COLOR", "1", 1);
  auto talk = start("echo");
  ::unsetenv("NO_COLOR");
  type(talk, "Hello!\n");
  BOOST_REQUIRE(talk.read_next("answer = "));
  type(talk, "/quit\n");
  const auto done = talk.wait();
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.output.find("\033[1m") == std::string::npos);
  BOOST_TEST(done.output.find("\033[2m") == std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(words_come_in_pieces_and_retries_are_told,
                        dialogue_folder) {
  const auto piece = [](const std::string& words) {
    return chunk(
      R"(data: {"model": "m", "choices": [{"index": 0, "delta": {"content": ")"
      + words + "\"}}]}\n\n");
  };
  std::atomic<int> requests = 0;
  http_server server([&](const served_request&) -> server_script {
    if (requests++ == 0)
      return {say(whole("busy", 503))};
    return {say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"),
            say(piece("a great")),
            hold(),
            say(piece(" owl")),
            say(chunk("data: {\"choices\": [{\"index\": 0, \"delta\": {}, "
                      "\"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n")),
            say("0\r\n\r\n")};
  });
  write("writer.yaml",
        fmt::format("name: writer\nmodel: {{name: 'openai:m', base_url: "
                    "'{}'}}\n",
                    server.url("/v1")));
  auto talk = start("writer");
  type(talk, "Go!\n");
  BOOST_REQUIRE(talk.read_next("status 503"));
  BOOST_REQUIRE(talk.read_next("; attempt 2 in "));
  BOOST_REQUIRE(talk.read_next(" a great"));
  server.let_go();
  BOOST_REQUIRE(talk.read_next(" owl"));
  type(talk, "/quit\n");
  const auto done = talk.wait();
  BOOST_TEST(done.code == 0);
  // The words are not repeated when the event is complete.
  BOOST_TEST(done.output.find("a great owl") == done.output.rfind("a great"));
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
