// Streamed answers, as the program shows them.

#include "troupe/core/event.hpp"

#include "../models/http_server.hpp"
#include "program.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <csignal>
#include <string>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(streaming)

namespace {

std::string piece_of(const std::string& words) {
  return chunk(
    R"(data: {"model": "m", "choices": [{"index": 0, "delta": {"content": ")"
    + words + "\"}}]}\n\n");
}

// A model that says "a great owl", and waits after the second piece until the
// test continues.
struct slow_model : scratch_folder {
  slow_model()
    : server({say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n"),
              say(piece_of("a gr\u00eb")),
              say(piece_of("at\\n\\u001b")),
              hold(),
              say(piece_of(" owl")),
              say(chunk("data: {\"choices\": [{\"index\": 0, \"delta\": {}, "
                        "\"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n")),
              say("0\r\n\r\n")}) {}

  program ask(std::vector<std::string> options,
              program::screen shown = program::screen::pipes) const {
    const auto file = write(
      "writer.yaml",
      fmt::format("name: writer\nmodel: {{name: 'openai:m', base_url: '{}'}}\n",
                  server.url("/v1")));
    options.insert(options.begin(),
                   {"run", file, "--store", "memory:", "--input", "Go!"});
    return program(std::move(options), shown);
  }

  http_server server;
};

} // namespace

BOOST_FIXTURE_TEST_CASE(pieces_are_printed_as_partial_events, slow_model) {
  auto running = ask({"--stream", "--output", "json"});
  BOOST_REQUIRE(running.read_until("\\u001b"));
  server.let_go();
  const auto done = running.wait();
  BOOST_TEST(done.code == 0, done.errors);
  std::string told;
  for (std::size_t at = 0; at < done.output.size();) {
    const auto end = done.output.find('\n', at);
    const auto said = json::parse(done.output.substr(at, end - at));
    told += fmt::format(
      "{}{}|",
      said.value("partial", false) ? "~" : "",
      said.at("content").at("parts").at(0).at("text").get<std::string>());
    at = end + 1;
  }
  BOOST_TEST(told == "~a gr\u00eb|~at\n\x1b|~ owl|a gr\u00ebat\n\x1b owl|");
  BOOST_TEST(server.requests().at(0).body.find("\"stream\":true")
             != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(text_has_committed_events_alone, slow_model) {
  server.let_go();
  const auto done = ask({"--stream"}).wait();
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(done.output == "writer: a gr\u00ebat\n  \\x1b owl\n");
}

BOOST_FIXTURE_TEST_CASE(a_terminal_shows_the_words_that_come, slow_model) {
  auto running = ask({"--stream"}, program::screen::terminal);
  BOOST_TEST(running.read_until(", writer: a gr\u00ebat \\x1b"));
  running.send(SIGINT);
  BOOST_TEST(running.wait().code == 130);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
