// Models over HTTP: retried and final failures, results that reach the caller,
// and the key, which only the server sees.

#include "troupe/models/formats/http_model.hpp"

#include "../outcome.hpp"
#include "http_server.hpp"
#include "tls_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(http_models)

namespace {

const std::string secret = "s3cret-k3y";

std::string answer_of(const std::string& words) {
  return R"({"id": "1", "object": "chat.completion", "model": "m", "choices": )"
         R"([{"index": 0, "finish_reason": "stop", "message": {"role": )"
         R"("assistant", "content": ")"
         + words
         + R"("}}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, )"
           R"("total_tokens": 3}})";
}

std::string refusal_of(const std::string& code) {
  return R"({"error": {"message": "please wait", "type": "t", "code": ")" + code
         + R"("}})";
}

std::string event_of(const std::string& words) {
  return R"(data: {"id": "1", "object": "chat.completion.chunk", "model": "m", )"
         R"("choices": [{"index": 0, "delta": {"content": ")"
         + words + "\"}}]}\n\n";
}

const std::string last_event
  = R"(data: {"id": "1", "object": "chat.completion.chunk", "model": "m", )"
    R"("choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})"
    "\n\ndata: [DONE]\n\n";

const std::string stream_head
  = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

// Answers each request by the next script of a list; the last one repeats.
http_server::answerer in_turn(std::vector<server_script> scripts) {
  auto next = std::make_shared<std::size_t>(0);
  return [scripts = std::move(scripts), next](const served_request&) {
    const auto index = std::min(*next, scripts.size() - 1);
    ++*next;
    return scripts[index];
  };
}

server_script once(std::string bytes) {
  return {say(std::move(bytes))};
}

// A model asked by a test, and its results.
struct asking {
  explicit asking(http_server::answerer answer, bool streams = false)
    : server(std::move(answer)) {
    options.name = "openai:m";
    options.format = openai_format();
    options.model = "m";
    options.base_url = server.url("/v1");
    options.key = [] { return secret; };
    options.streams = streams;
    options.client = std::make_shared<http_client>();
    options.retries.first = 1ms;
    options.retries.longest = 1ms;
  }

  /// Asks, and waits for the end.
  result<model_response> ask() {
    std::promise<result<model_response>> ended;
    std::atomic<int> ends = 0;
    http_model model(options);
    model.generate(request(), [&](result<model_response> answer) {
      if (answer && answer->partial) {
        pieces += answer->content.text() + "|";
        return;
      }
      if (++ends == 1)
        ended.set_value(std::move(answer));
    });
    auto outcome = ended.get_future().get();
    BOOST_TEST(ends == 1);
    // The key is sent to the server, and shown nowhere else.
    if (!outcome)
      BOOST_TEST(reason_of(outcome).find("s3cret") == std::string::npos,
                 reason_of(outcome));
    for (const auto& each : server.requests()) {
      BOOST_TEST(each.header("authorization") == "Bearer " + secret);
      BOOST_TEST(each.line.find("s3cret") == std::string::npos);
      BOOST_TEST(each.body.find("s3cret") == std::string::npos);
    }
    return outcome;
  }

  std::string text() {
    auto outcome = ask();
    return outcome ? outcome->content.text() : reason_of(outcome);
  }

  model_request request() const {
    model_request wanted;
    wanted.response_schema = schema;
    wanted.agent = "a";
    wanted.contents
      = {std::make_shared<const content>(user_text("What about owls?"))};
    wanted.environment = environment;
    wanted.retries = budget;
    wanted.stop = stop.get_token();
    return wanted;
  }

  http_server server;
  http_model_options options;
  std::shared_ptr<troupe::environment> environment = system_environment();
  std::shared_ptr<retry_budget> budget;
  value schema;
  std::stop_source stop;
  std::string pieces;
};

} // namespace

BOOST_AUTO_TEST_CASE(an_answer_is_the_models) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(
    on.server.requests().at(0).line.starts_with("POST /v1/chat/completions "));
}

BOOST_DATA_TEST_CASE(what_may_pass_is_asked_again,
                     data::make({408, 429, 500, 502, 503, 504, 529}),
                     status) {
  asking on(in_turn({once(whole(refusal_of("later"), status)),
                     once(whole("<html>bad gateway</html>", status)),
                     once(whole(answer_of("hoo")))}));
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(on.server.requests().size() == 3U);
}

BOOST_DATA_TEST_CASE(what_is_wrong_is_not_asked_again,
                     data::make({400, 401, 403, 404, 422, 301}),
                     status) {
  asking on(in_turn({once(whole(refusal_of("no_such"), status))}));
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "model_failed");
  const auto reason = reason_of(outcome);
  BOOST_TEST(reason.starts_with("OpenAI model 'm': status "
                                + std::to_string(status) + ": "),
             reason);
  BOOST_TEST(reason.find("no_such") != std::string::npos, reason);
  BOOST_TEST(reason.find("please wait") != std::string::npos, reason);
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(headers_of_ones_own_are_sent_in_place_of_the_formats) {
  asking on(in_turn(
    {once(whole(refusal_of("later"), 503)), once(whole(answer_of("hoo")))}));
  on.options.headers = {{"X-Own", "a"}, {"ACCEPT", "text/own"}};
  BOOST_TEST(on.text() == "hoo");
  for (const auto& each : on.server.requests()) {
    BOOST_TEST(each.header("x-own") == "a");
    BOOST_TEST(each.header("accept") == "text/own");
    BOOST_TEST(
      std::ranges::count(
        each.headers, "accept", [](const auto& header) { return header.first; })
      == 1);
  }
}

// A model with a schema, and a server that refuses the schema.
struct strictly_asking : asking {
  explicit strictly_asking(bool streams = false)
    : asking(
      in_turn({once(whole(refusal, 400)), once(whole(answer_of("hoo")))}),
      streams) {
    schema = R"({"type": "object", "properties": {}})"_json;
  }

  inline static const std::string refusal
    = R"({"error": {"message": "Invalid schema for response_format 'answer'"}})";
};

// The retry comes at once, because a wait would not change the server's answer.
BOOST_AUTO_TEST_CASE(what_is_refused_is_left_out_at_once) {
  for (const bool streams : {false, true}) {
    strictly_asking on(streams);
    on.environment = std::make_shared<simulated_environment>(1);
    BOOST_TEST(on.text() == "hoo");
    const auto sent = on.server.requests();
    BOOST_TEST_REQUIRE(sent.size() == 2U);
    BOOST_TEST(sent[0].body.find(R"("strict":true)") != std::string::npos);
    BOOST_TEST(sent[1].body.find(R"("strict":false)") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(to_leave_out_is_an_attempt_and_a_retry) {
  strictly_asking last;
  last.options.retries.attempts_max = 1;
  BOOST_TEST(code_of(last.ask()) == "model_failed");
  BOOST_TEST(last.server.requests().size() == 1U);
  strictly_asking spent;
  spent.budget = std::make_shared<retry_budget>(0);
  BOOST_TEST(code_of(spent.ask()) == "model_failed");
  BOOST_TEST(spent.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_not_left_out) {
  asking on(in_turn({once(whole(strictly_asking::refusal, 400))}));
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 1U);
  strictly_asking twice;
  on.schema = twice.schema;
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_connection_that_breaks_is_made_again) {
  asking on(in_turn({{testing::reset()},
                     {say("HTTP/1.1 200 OK\r\nContent-Le"), testing::close()},
                     once(whole(answer_of("hoo")))}));
  BOOST_TEST(on.text() == "hoo");
}

BOOST_AUTO_TEST_CASE(attempts_end_and_the_last_failure_is_told) {
  asking on(in_turn({once(whole(refusal_of("first"), 500)),
                     once(whole(refusal_of("second"), 503))}));
  on.options.retries.attempts_max = 3;
  const auto reason = reason_of(on.ask());
  BOOST_TEST(reason.starts_with("OpenAI model 'm', attempt 3: status 503"),
             reason);
  BOOST_TEST(reason.find("second") != std::string::npos, reason);
  BOOST_TEST(on.server.requests().size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_run_has_a_budget_of_retries) {
  asking on(in_turn({once(whole(refusal_of("x"), 500))}));
  on.budget = std::make_shared<retry_budget>(1);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 2U);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 3U);
}

// Simulated time: the retry is not sent before the server allows it.
BOOST_AUTO_TEST_CASE(retry_after_is_obeyed) {
  for (const auto* header :
       {"Retry-After: 7\r\n", "retry-after-ms: 7000\r\nRetry-After: 99\r\n"}) {
    asking on(in_turn({once(whole(refusal_of("x"), 429, header)),
                       once(whole(answer_of("hoo")))}));
    const auto time = std::make_shared<simulated_environment>(1);
    on.environment = time;
    std::promise<void> ended;
    http_model model(on.options);
    model.generate(on.request(), [&ended](const auto& answer) {
      BOOST_REQUIRE(answer.has_value());
      ended.set_value();
    });
    on.server.wait_for_requests(1);
    while (time->waiting() == 0)
      std::this_thread::yield();
    time->advance(6'999ms);
    BOOST_TEST(time->waiting() == 1U); // Not sent yet.
    time->advance(1ms);
    ended.get_future().wait();
    BOOST_TEST(on.server.requests().size() == 2U);
  }
}

BOOST_AUTO_TEST_CASE(a_wish_for_no_wait_still_backs_off) {
  asking on(in_turn({once(whole(refusal_of("x"), 429, "Retry-After: 0\r\n")),
                     once(whole(answer_of("hoo")))}));
  const auto time = std::make_shared<simulated_environment>(1);
  on.environment = time;
  on.options.retries.first = 1h;
  on.options.retries.longest = 1h;
  std::promise<void> ended;
  http_model model(on.options);
  model.generate(on.request(), [&ended](const auto&) { ended.set_value(); });
  while (time->waiting() == 0)
    std::this_thread::yield();
  time->advance(1ms);
  BOOST_TEST(time->waiting() == 1U);
  time->advance(1h);
  ended.get_future().wait();
}

BOOST_AUTO_TEST_CASE(a_retry_that_would_take_too_long_is_none) {
  asking on(
    in_turn({once(whole(refusal_of("x"), 429, "Retry-After: 3600\r\n"))}));
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 1U);
}

// -- streams ----

BOOST_AUTO_TEST_CASE(pieces_come_before_the_whole) {
  asking on(in_turn({{say(stream_head),
                      say(chunk(event_of("ho"))),
                      say(chunk(event_of("o"))),
                      say(chunk(last_event)),
                      say("0\r\n\r\n")}}),
            true);
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(on.pieces == "ho|o|");
}

BOOST_AUTO_TEST_CASE(a_stream_that_is_split_anywhere_says_the_same) {
  const auto bytes = stream_head + chunk(event_of("h\u00f6") + event_of("o"))
                     + chunk(last_event) + "0\r\n\r\n";
  asking on(in_turn({drip(bytes, 0ms)}), true);
  BOOST_TEST(on.text() == "h\u00f6o");
}

BOOST_AUTO_TEST_CASE(once_a_piece_is_delivered_nothing_is_asked_again) {
  asking on(
    in_turn({{say(stream_head), say(chunk(event_of("ho"))), testing::reset()},
             once(whole(answer_of("hoo")))}),
    true);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.pieces == "ho|");
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_that_breaks_off_before_is_asked_again) {
  asking on(in_turn({{say(stream_head), testing::reset()},
                     {say(stream_head),
                      say(chunk(event_of("hoo"))),
                      say(chunk(last_event)),
                      say("0\r\n\r\n")}}),
            true);
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(on.server.requests().size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_stream_that_ends_before_it_says_a_word_is_asked_again) {
  asking on(in_turn({{say(stream_head), say("0\r\n\r\n")},
                     {say(stream_head),
                      say(chunk(event_of("hoo"))),
                      say(chunk(last_event)),
                      say("0\r\n\r\n")}}),
            true);
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(on.server.requests().size() == 2U);
}

// The failure is in the body; the status was that of a success.
BOOST_AUTO_TEST_CASE(a_failure_within_a_stream_is_asked_again_if_it_may_pass) {
  for (const auto& [failure, is_asked_again] :
       {std::pair(R"({"error": {"type": "overloaded_error"}})", true),
        std::pair(R"({"error": {"type": "api_error"}})", true),
        std::pair(R"({"error": {"code": 503, "message": "later"}})", true),
        std::pair(R"({"error": {"code": "429", "message": "later"}})", true),
        std::pair(R"({"error": {"status": "UNAVAILABLE"}})", true),
        std::pair(R"({"error": {"code": 400, "message": "no"}})", false),
        std::pair(R"({"error": "no"})", false)})
    for (const std::string frame : {"data: ", ": hello\n\n"}) {
      asking on(in_turn({{say(stream_head),
                          say(chunk(frame + failure + "\n\n")),
                          say("0\r\n\r\n")},
                         once(whole(answer_of("hoo")))}),
                true);
      BOOST_TEST((on.text() == "hoo") == is_asked_again, failure);
      BOOST_TEST(on.server.requests().size() == (is_asked_again ? 2U : 1U));
    }
}

BOOST_AUTO_TEST_CASE(a_failure_behind_words_is_told_and_not_asked_again) {
  asking on(
    in_turn({{say(stream_head),
              say(chunk(event_of("ho") + last_event
                        + "{\n  \"error\": {\"status\": \"UNAVAILABLE\"}\n}")),
              say("0\r\n\r\n")},
             once(whole(answer_of("hoo")))}),
    true);
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "model_failed");
  BOOST_TEST(reason_of(outcome) == "OpenAI model 'm': UNAVAILABLE");
  BOOST_TEST(on.server.requests().size() == 1U);
}

// The stream need not end by itself.
BOOST_AUTO_TEST_CASE(a_stream_of_garbage_is_closed_at_once) {
  asking on(
    in_turn(
      {{say(stream_head), say(chunk("data: {\"choices\": 3}\n\n")), hold()}}),
    true);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  on.server.wait_for_hang_ups(1);
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(an_answer_may_come_whole_where_a_stream_was_asked_for) {
  asking on(in_turn({drip(whole("\xEF\xBB\xBF \n" + answer_of("hoo")), 0ms),
                     once(whole(refusal_of("no_such"))),
                     once(whole("nonsense"))}),
            true);
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(on.pieces == "");
  BOOST_TEST(reason_of(on.ask()).find("no_such") != std::string::npos);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
}

// Each chunk comes as one piece.
BOOST_DATA_TEST_CASE(a_byte_order_mark_may_come_in_two_pieces,
                     data::make({1, 2, 3}),
                     bytes) {
  const auto body = "\xEF\xBB\xBF \n" + answer_of("hoo");
  const auto first = static_cast<std::size_t>(bytes);
  asking on(in_turn({once(stream_head + chunk(body.substr(0, first))
                          + chunk(body.substr(first)) + "0\r\n\r\n")}),
            true);
  BOOST_TEST(on.text() == "hoo");
}

BOOST_DATA_TEST_CASE(an_answer_that_does_not_end_is_given_up,
                     data::make({false, true}),
                     streams) {
  // No piece of it is large, and it need not end by itself.
  server_script endless{say(stream_head)};
  for (int count = 0; count < 20; ++count)
    endless.push_back(
      say(chunk(streams ? event_of("hoo") : std::string(100, ' '))));
  endless.push_back(hold());
  asking on(in_turn({endless}), streams);
  on.options.answer_bytes_max = 1'000;
  BOOST_TEST(reason_of(on.ask())
             == "OpenAI model 'm': the answer has more than 1000 bytes");
  on.server.wait_for_hang_ups(1);
  BOOST_TEST(on.server.requests().size() == 1U);
}

// The server may do anything with the connection after that.
BOOST_AUTO_TEST_CASE(a_stream_that_has_ended_is_an_answer) {
  for (const auto& behind : {testing::reset(), testing::close(), hold()}) {
    asking on(
      in_turn(
        {{say(stream_head), say(chunk(event_of("hoo") + last_event)), behind}}),
      true);
    BOOST_TEST(on.text() == "hoo");
    BOOST_TEST(on.server.requests().size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_counts_whatever_becomes_of_its_connection) {
  const std::string head
    = "HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const auto& script :
       {server_script{say(head + chunk(refusal_of("no"))), testing::reset()},
        server_script{say(head + chunk(refusal_of("no"))), hold()}}) {
    asking on(in_turn({script}));
    on.options.timeouts.between = 50ms;
    const auto reason = reason_of(on.ask());
    BOOST_TEST(reason.starts_with("OpenAI model 'm': status 401: "), reason);
    BOOST_TEST(on.server.requests().size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_refusal_that_does_not_end_is_read_to_a_limit) {
  asking on(in_turn(
    {{say("HTTP/1.1 401 Unauthorized\r\nTransfer-Encoding: chunked\r\n\r\n"
          + chunk(refusal_of("no") + std::string(70'000, ' '))),
      hold()}}));
  const auto reason = reason_of(on.ask());
  BOOST_TEST(reason.starts_with("OpenAI model 'm': status 401: "), reason);
  on.server.wait_for_hang_ups(1);
}

BOOST_AUTO_TEST_CASE(no_part_of_a_key_is_told_where_words_are_cut_off) {
  for (std::size_t words = 480; words < 500; ++words) {
    asking on(
      in_turn({{say(stream_head),
                say(chunk(R"(data: {"error": {"message": ")"
                          + std::string(words, 'x') + secret + "\"}}\n\n"))}}),
      true);
    const auto reason = reason_of(on.ask());
    BOOST_TEST(reason.find("s3c") == std::string::npos, reason);
  }
}

BOOST_AUTO_TEST_CASE(nothing_follows_the_last_word_of_a_stop) {
  asking on(in_turn({{say(stream_head + chunk(event_of("hoo"))), hold()}}),
            true);
  std::vector<std::string> told;
  std::promise<void> ended;
  http_model model(on.options);
  // The stop is requested while a piece is delivered.
  model.generate(on.request(), [&](const result<model_response>& answer) {
    if (answer && answer->partial)
      on.stop.request_stop();
    told.push_back(answer ? answer->content.text() : code_of(answer));
    if (!answer)
      ended.set_value();
  });
  ended.get_future().wait();
  on.server.wait_for_hang_ups(1);
  BOOST_TEST((told == std::vector<std::string>{"hoo", "cancelled"}));
}

BOOST_AUTO_TEST_CASE(a_stream_without_its_end_is_no_answer) {
  asking on(
    in_turn({{say(stream_head), say(chunk(event_of("ho"))), say("0\r\n\r\n")}}),
    true);
  BOOST_TEST(code_of(on.ask()) == "model_failed");
}

// -- ends ----

// The call then holds the last reference to its client, on a thread of that
// client.
BOOST_AUTO_TEST_CASE(a_model_may_be_gone_when_it_answers) {
  asking on(in_turn({once(whole(answer_of("ho")))}));
  auto model = std::make_unique<http_model>(on.options);
  on.options.client.reset();
  std::promise<bool> ended;
  model->generate(on.request(), [&](const auto& answer) {
    model.reset();
    ended.set_value(answer.has_value());
  });
  BOOST_TEST(ended.get_future().get());
  on.server.wait_for_hang_ups(1);
}

BOOST_AUTO_TEST_CASE(a_stop_closes_the_connection) {
  asking on(in_turn({{hold()}}));
  std::promise<result<model_response>> ended;
  http_model model(on.options);
  model.generate(on.request(),
                 [&ended](auto answer) { ended.set_value(std::move(answer)); });
  on.server.wait_for_requests(1);
  on.stop.request_stop();
  BOOST_TEST(code_of(ended.get_future().get()) == "cancelled");
  on.server.wait_for_hang_ups(1);
}

BOOST_AUTO_TEST_CASE(a_stop_before_the_start_asks_nobody) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  on.stop.request_stop();
  BOOST_TEST(code_of(on.ask()) == "cancelled");
  BOOST_TEST(on.options.client->under_way() == 0U);
  BOOST_TEST(on.server.requests().empty());
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait_for_a_retry) {
  asking on(
    in_turn({once(whole(refusal_of("x"), 429, "Retry-After: 100\r\n"))}));
  const auto time = std::make_shared<simulated_environment>(1);
  on.environment = time;
  std::promise<result<model_response>> ended;
  http_model model(on.options);
  model.generate(on.request(),
                 [&ended](auto answer) { ended.set_value(std::move(answer)); });
  while (time->waiting() == 0)
    std::this_thread::yield();
  on.stop.request_stop();
  BOOST_TEST(code_of(ended.get_future().get()) == "cancelled");
  time->advance(200s);
  BOOST_TEST(on.options.client->under_way() == 0U);
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(a_time_out_is_told_as_one) {
  asking on(in_turn({{hold()}}));
  on.options.timeouts.first_byte = 20ms;
  on.options.retries.attempts_max = 1;
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "deadline_exceeded");
  BOOST_TEST(reason_of(outcome).starts_with("OpenAI model 'm': "),
             reason_of(outcome));
}

BOOST_AUTO_TEST_CASE(a_connection_that_never_stands_is_asked_for_again) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  const deaf_listener deaf;
  on.options.base_url = deaf.url();
  on.options.timeouts.connect = 20ms;
  on.options.retries.attempts_max = 3;
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "deadline_exceeded");
  BOOST_TEST(reason_of(outcome).starts_with("OpenAI model 'm', attempt 3: "),
             reason_of(outcome));
  BOOST_TEST(reason_of(outcome).find("no connection after 20 ms")
               != std::string::npos,
             reason_of(outcome));
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_not_asked_again) {
  asking on(in_turn({{hold()}}));
  on.options.timeouts.first_byte = 20ms;
  BOOST_TEST(code_of(on.ask()) == "deadline_exceeded");
  // On a slow machine the model may give up before the server has read it.
  on.server.wait_for_requests(1);
  BOOST_TEST(on.server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(headers_that_are_too_large_are_not_asked_for_again) {
  asking on(in_turn({once("HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x')
                          + "\r\nContent-Length: 0\r\n\r\n")}));
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "model_failed");
  BOOST_TEST(reason_of(outcome).find("the response's headers are larger than "
                                     "102400 bytes in one line")
               != std::string::npos,
             reason_of(outcome));
  BOOST_TEST(on.server.requests().size() == 1U);
}

// After a retry the reason would contain the number of attempts.
BOOST_AUTO_TEST_CASE(a_certificate_that_does_not_fit_is_not_asked_for_again) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  const tls_server unknown;
  const tls_server expired(certificate_age::expired);
  const auto reason = [&](std::string url, const std::string& trusted) {
    on.options.base_url = std::move(url);
    on.options.client = std::make_shared<http_client>(
      http_client_options{.certificates = trusted});
    const auto outcome = on.ask();
    BOOST_TEST(code_of(outcome) == "model_failed");
    return reason_of(outcome);
  };
  for (const auto& told :
       {reason(unknown.base_url(), expired.certificate()),
        reason(unknown.base_url("127.0.0.1"), unknown.certificate()),
        reason(expired.base_url(), expired.certificate()),
        reason(unknown.base_url(), "/nowhere/certificate.pem")}) {
    BOOST_TEST(told.starts_with("OpenAI model 'm': "), told);
    BOOST_TEST(told.find("certificate") != std::string::npos, told);
  }
}

BOOST_AUTO_TEST_CASE(a_key_is_not_sent_over_plain_http) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  // This holds even if a proxy would forward the request.
  on.options.client = std::make_shared<http_client>(
    http_client_options{.proxy = on.server.url("")});
  on.options.base_url = "http://server.example/v1";
  const auto outcome = on.ask();
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(reason_of(outcome)
             == "OpenAI model 'm': a key is not sent over plain http to "
                "server.example: use an https URL, a server or tunnel on "
                "localhost, or no key");
  BOOST_TEST(on.server.connections() == 0U);
}

BOOST_AUTO_TEST_CASE(a_key_for_loopback_goes_past_every_proxy) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  http_server proxy({say(whole("the proxy was asked"))});
  on.options.client = std::make_shared<http_client>(
    http_client_options{.threads = 1, .proxy = proxy.url("")});
  BOOST_TEST(on.text() == "hoo");
  BOOST_TEST(proxy.connections() == 0U);
  // The next request has no key. It uses the same handle, and the proxy.
  auto without = on.options;
  without.key = {};
  std::promise<void> ended;
  http_model model(without);
  model.generate(on.request(), [&ended](const auto&) { ended.set_value(); });
  ended.get_future().wait();
  BOOST_TEST(proxy.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_is_no_answer_is_an_error) {
  for (const auto* body : {"", "nonsense", "{}", "[]", "{\"choices\": []}"}) {
    asking on(in_turn({once(whole(body))}));
    BOOST_TEST(code_of(on.ask()) == "model_failed", body);
    BOOST_TEST(on.server.requests().size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(a_limit_holds_requests_back) {
  asking on(in_turn({once(whole(answer_of("hoo")))}));
  const auto time = std::make_shared<simulated_environment>(1);
  on.options.limit = std::make_shared<rate_limit>(
    rate_limit_options{.requests_per_minute = 1}, time);
  BOOST_TEST(on.text() == "hoo");
  std::promise<void> ended;
  http_model model(on.options);
  model.generate(on.request(), [&ended](const auto&) { ended.set_value(); });
  time->advance(59s);
  BOOST_TEST(time->waiting() == 1U);
  time->advance(2s);
  ended.get_future().wait();
  BOOST_TEST(on.server.requests().size() == 2U);
}

BOOST_AUTO_TEST_SUITE_END()
