// Streamed answers of models over HTTP: their pieces, their ends, and failures
// within them.

#include "asked_model.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <future>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(http_streams)

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

BOOST_AUTO_TEST_SUITE_END()
