#include "troupe/models/http/client.hpp"

#include "../outcome.hpp"
#include "http2_server.hpp"
#include "http_witness.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <ostream>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace testing {

std::ostream& operator<<(std::ostream& out, farewell how) {
  switch (how) {
  case farewell::orderly:
    return out << "orderly";
  case farewell::fin:
    return out << "FIN";
  case farewell::reset:
    return out << "RST";
  case farewell::garbage:
    return out << "garbage";
  }
  return out;
}

} // namespace testing

namespace {

using namespace std::chrono_literals;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

enum class given_up : std::uint8_t { cancelled, thrown, late };

std::ostream& operator<<(std::ostream& out, given_up why) {
  switch (why) {
  case given_up::cancelled:
    return out << "cancelled";
  case given_up::thrown:
    return out << "thrown";
  case given_up::late:
    return out << "late";
  }
  return out;
}

/// A server, a client, and the outcomes of the requests between them.
class http2_conversation {
public:
  explicit http2_conversation(http2_server::answerer answer,
                              http2_server::options given = {})
    : server(std::move(answer), given),
      client({.threads = 1, .certificates = server.certificate()}) {}

  explicit http2_conversation(server_script script,
                              http2_server::options given = {})
    : http2_conversation(
      [script = std::move(script)](const served_request&) { return script; },
      given) {}

  /// Requests have the paths `/0`, `/1` and so on.
  http_call ask(http_request request = {}) {
    request.url = server.url(fmt::format("/{}?key=s3cret", told.size()));
    return client.start(std::move(request), told.emplace_back().handler());
  }

  std::vector<http_call> ask_many(std::size_t count) {
    std::vector<http_call> calls;
    for (std::size_t i = 0; i < count; ++i)
      calls.push_back(ask());
    return calls;
  }

  /// Starts a request whose answer begins with "part" and does not end, then
  /// gives it up.
  void give_up(given_up why) {
    http_request request;
    if (why == given_up::late)
      request.timeouts.between = 50ms;
    auto& last = told.emplace_back();
    if (why == given_up::thrown)
      last.on_piece = [] { throw std::runtime_error("dropped it"); };
    request.url = server.url(fmt::format("/{}", told.size() - 1));
    const auto call = client.start(std::move(request), last.handler());
    if (why == given_up::cancelled) {
      last.wait_for_body("part");
      call.cancel();
    }
    BOOST_TEST(code_of(last.end())
               == (why == given_up::cancelled ? "cancelled"
                   : why == given_up::thrown  ? "internal"
                                              : "deadline_exceeded"));
  }

  /// Returns the codes of all ends.
  std::string ends() {
    std::set<std::string> codes;
    for (auto& each : told) {
      const auto ended = text_of(each.end());
      codes.insert(ended.substr(0, ended.find(' ')));
      BOOST_TEST(each.ends() == 1);
      BOOST_TEST(!has(ended, "s3cret"), ended);
    }
    return fmt::format("{}", fmt::join(codes, ", "));
  }

  http2_server server;
  std::deque<witness> told;
  http_client client;
};

/// Returns the number of a request made by `http2_conversation`.
std::size_t number_of(const served_request& request) {
  return std::stoul(request.header(":path").substr(1));
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string made(size, '\0');
  for (auto& byte : made)
    byte = static_cast<char>(random());
  return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(http2_requests)

BOOST_AUTO_TEST_CASE(a_request_is_posted_as_it_is_given) {
  http2_conversation with({say("yes")});
  http_request request;
  request.headers = {{"X-Api-Key", "k"}, {"X-Empty", ""}};
  request.body = std::string("a\0b", 3);
  with.ask(request);
  BOOST_TEST(with.ends() == "ok");
  BOOST_TEST(with.told[0].status() == 200);
  BOOST_TEST(with.told[0].body() == "yes");
  const auto served = with.server.requests().at(0);
  BOOST_TEST(served.line == "POST /0?key=s3cret HTTP/2");
  BOOST_TEST(served.body == request.body);
  BOOST_TEST(served.header("x-api-key") == "k");
  for (const auto& [name, text] : served.headers)
    BOOST_TEST((name != "content-type" && name != "expect"));
}

// Compressed, a character takes between five and thirteen bits.
BOOST_DATA_TEST_CASE(headers_that_are_too_large_are_a_lasting_failure,
                     data::make({1, 4, 5, 20}) * data::make({'a', '~'}),
                     parts,
                     letter) {
  const auto count = static_cast<std::size_t>(parts);
  http2_server::options given;
  for (std::size_t i = 0; i < count; ++i)
    given.headers.emplace_back(fmt::format("x-{}", i),
                               std::string(300'000 / count, letter));
  http2_conversation with({say("yes")}, given);
  with.ask();
  const auto ended = text_of(with.told[0].end());
  BOOST_TEST(ended.starts_with("model_failed "), ended);
  BOOST_TEST(has(ended, "the response's headers are larger than"), ended);
  BOOST_TEST(!with.told[0].may_pass());
}

BOOST_DATA_TEST_CASE(a_server_that_leaves_without_an_answer_may_have_one_later,
                     data::make({farewell::orderly,
                                 farewell::fin,
                                 farewell::reset,
                                 farewell::garbage}),
                     how) {
  http2_conversation with({hold()});
  with.ask();
  with.server.wait_for_requests(1);
  with.server.hang_up(how);
  const auto ended = text_of(with.told[0].end());
  BOOST_TEST(ended.starts_with("model_failed "), ended);
  BOOST_TEST(with.told[0].may_pass());
}

BOOST_AUTO_TEST_CASE(many_requests_at_the_same_time_share_few_connections) {
  http2_server server({hold(), say("text")});
  std::vector<witness> told(300);
  http_client client({.certificates = server.certificate()});
  for (auto& each : told)
    client.start(request_to(server.url()), each.handler());
  server.wait_for_requests(300);
  BOOST_TEST(server.connections() == 3U);
  server.let_go();
  for (auto& each : told)
    BOOST_TEST(text_of(each.end()) == "ok ");
}

BOOST_AUTO_TEST_CASE(requests_one_after_another_share_a_connection) {
  http2_conversation with({say("text")});
  for (int i = 0; i < 20; ++i) {
    with.ask();
    BOOST_TEST(with.ends() == "ok");
  }
  BOOST_TEST(with.server.connections() == 1U);
}

// The server refuses further streams of a connection; those requests use
// another one.
BOOST_AUTO_TEST_CASE(a_server_that_allows_few_streams_gets_all_requests) {
  http2_conversation with({hold(), say("text")}, {.streams_max = 10});
  with.ask_many(20);
  with.server.wait_for_requests(10);
  with.server.let_go();
  BOOST_TEST(with.ends() == "ok");
  BOOST_TEST(with.server.requests().size() == 20U);
  BOOST_TEST(with.server.streams_at_once() <= 10U);
}

BOOST_AUTO_TEST_CASE(answers_come_piece_by_piece_and_side_by_side) {
  http2_conversation with({say("one "), hold(), say("two")});
  with.ask_many(5);
  for (auto& each : with.told) {
    each.wait_for_body("one ");
    BOOST_TEST(each.status() == 200);
  }
  BOOST_TEST(with.client.under_way() == 5U);
  with.server.let_go();
  BOOST_TEST(with.ends() == "ok");
  for (auto& each : with.told)
    BOOST_TEST(each.body() == "one two");
  BOOST_TEST(with.server.connections() == 1U);
}

// The server's windows are 64 KiB. Together the answers are larger than curl's
// window of 32 MiB for a connection.
BOOST_AUTO_TEST_CASE(large_bodies_arrive_whole_both_ways) {
  http2_conversation with([](const served_request& request) {
    return server_script{say(request.body)};
  });
  std::vector<std::string> bodies;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    http_request request;
    request.body = bodies.emplace_back(noise(std::size_t{12} << 20U, seed));
    with.ask(request);
  }
  BOOST_TEST(with.ends() == "ok");
  for (std::size_t i = 0; i < bodies.size(); ++i)
    BOOST_TEST((with.told[i].body() == bodies[i]));
  BOOST_TEST(with.server.connections() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http2_cancelling)

BOOST_DATA_TEST_CASE(
  an_answer_that_is_given_up_closes_its_stream_alone,
  data::make({given_up::cancelled, given_up::thrown, given_up::late}),
  why) {
  http2_conversation with({say("part"), hold(), say("rest")});
  with.ask_many(3);
  for (auto& each : with.told)
    each.wait_for_body("part");
  with.give_up(why);
  with.server.wait_for_broken(1);
  with.server.let_go();
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(text_of(with.told[i].end()) == "ok ");
    BOOST_TEST(with.told[i].body() == "partrest");
  }
  with.ask();
  BOOST_TEST(text_of(with.told.back().end()) == "ok ");
  BOOST_TEST(with.server.broken().size() == 1U);
  BOOST_TEST(with.server.broken().at(0) == "/3");
  BOOST_TEST(with.server.connections() == 1U);
}

BOOST_AUTO_TEST_CASE(
  many_that_wait_for_an_answer_are_cancelled_but_the_others) {
  http2_conversation with({hold(), say("text")});
  const auto calls = with.ask_many(50);
  with.server.wait_for_requests(50);
  for (std::size_t i = 0; i < 50; i += 2)
    calls[i].cancel();
  with.server.wait_for_broken(25);
  with.server.let_go();
  for (std::size_t i = 0; i < 50; ++i)
    BOOST_TEST(code_of(with.told[i].end())
               == (i % 2 == 0 ? "cancelled" : "ok"));
  BOOST_TEST(with.ends() == "cancelled, ok");
  BOOST_TEST(with.server.broken().size() == 25U);
  for (const auto& path : with.server.broken())
    BOOST_TEST(std::stoul(path.substr(1)) % 2 == 0U);
  BOOST_TEST(with.server.connections() == 1U);
}

// The first body takes the whole window of the connection, so the others wait.
BOOST_AUTO_TEST_CASE(a_body_that_the_server_does_not_take_is_cancelled) {
  http2_conversation with({say("text")}, {.takes_bodies = false});
  http_request request;
  request.body.assign(std::size_t{1} << 20U, 'b');
  const auto first = with.ask(request);
  with.ask(request);
  with.server.wait_for_streams(2);
  first.cancel();
  BOOST_TEST(code_of(with.told[0].end()) == "cancelled");
  with.server.wait_for_broken(1);
  BOOST_TEST(with.client.under_way() == 1U);
  BOOST_TEST(with.server.connections() == 1U);
}

// No other stream is left whose frames could carry the reset.
BOOST_DATA_TEST_CASE(
  the_last_stream_takes_its_connection_along,
  data::make({given_up::cancelled, given_up::thrown, given_up::late}),
  why) {
  http2_conversation with([](const served_request& request) {
    return request.connection == 1 ? server_script{say("part"), hold()}
                                   : server_script{say("text")};
  });
  with.give_up(why);
  with.server.wait_for_ends(1);
  for (int i = 0; i < 3; ++i) {
    with.ask();
    BOOST_TEST(text_of(with.told.back().end()) == "ok ");
  }
  BOOST_TEST(with.server.connections() == 2U);
}

BOOST_AUTO_TEST_CASE(all_streams_are_cancelled_before_the_client_is_gone) {
  http2_server server({say("part"), hold()});
  std::vector<witness> told(250);
  {
    http_client client({.certificates = server.certificate()});
    for (auto& each : told)
      client.start(request_to(server.url()), each.handler());
    for (auto& each : told)
      each.wait_for_body("part");
  }
  for (auto& each : told) {
    BOOST_REQUIRE(each.ends() == 1);
    BOOST_TEST(code_of(each.end()) == "cancelled");
  }
  server.wait_for_ends(3);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http2_failures)

BOOST_DATA_TEST_CASE(a_stream_that_the_server_resets_is_a_failure_of_its_own,
                     data::make({"", "part"}),
                     word) {
  http2_conversation with([word](const served_request& request) {
    server_script script{say("part"), hold()};
    if (*word == '\0')
      script.erase(script.begin());
    script.push_back(number_of(request) % 2 == 0 ? say("rest") : reset());
    return script;
  });
  with.ask_many(20);
  with.server.wait_for_requests(20);
  for (auto& each : with.told)
    each.wait_for_body(word);
  with.server.let_go();
  BOOST_TEST(with.ends() == "model_failed, ok");
  for (std::size_t i = 0; i < 20; ++i) {
    BOOST_TEST(code_of(with.told[i].end())
               == (i % 2 == 0 ? "ok" : "model_failed"));
    BOOST_TEST(with.told[i].body()
               == (i % 2 == 0 ? std::string(word) + "rest" : word));
  }
  BOOST_TEST(with.server.requests().size() == 20U);
  BOOST_TEST(with.server.connections() == 1U);
}

BOOST_AUTO_TEST_CASE(a_stream_that_the_server_refuses_is_sent_once_more) {
  http2_conversation with({reset()}, {.reset_code = NGHTTP2_REFUSED_STREAM});
  with.ask();
  BOOST_TEST(with.ends() == "model_failed");
  BOOST_TEST(with.server.requests().size() == 2U);
}

BOOST_AUTO_TEST_CASE(streams_that_the_server_lets_end_before_it_goes_end_well) {
  http2_conversation with({say("part "), hold(), say("rest")});
  with.ask_many(10);
  for (auto& each : with.told)
    each.wait_for_body("part ");
  with.server.go_away(10);
  with.server.let_go();
  BOOST_TEST(with.ends() == "ok");
  for (auto& each : with.told)
    BOOST_TEST(each.body() == "part rest");
  with.ask();
  BOOST_TEST(with.ends() == "ok");
  BOOST_TEST(with.server.requests().size() == 11U);
  BOOST_TEST(with.server.connections() == 2U);
}

// Requests that the server has not processed are sent on another connection.
BOOST_DATA_TEST_CASE(a_server_that_goes_harms_nobody,
                     data::make({1, 4, 9}),
                     answered) {
  http2_conversation with({hold(), say("text")});
  with.ask_many(10);
  with.server.wait_for_requests(10);
  with.server.go_away(static_cast<std::size_t>(answered));
  with.server.wait_for_requests(20 - static_cast<std::size_t>(answered));
  with.server.let_go();
  BOOST_TEST(with.ends() == "ok");
  std::vector<int> times(10);
  for (const auto& request : with.server.requests())
    ++times[number_of(request)];
  BOOST_TEST(std::count(times.begin(), times.end(), 1) == answered);
  BOOST_TEST(std::count(times.begin(), times.end(), 2) == 10 - answered);
}

const std::vector<farewell> farewells{
  farewell::orderly, farewell::fin, farewell::reset};

BOOST_DATA_TEST_CASE(a_connection_that_is_lost_within_answers_fails_each_once,
                     data::make(farewells),
                     how) {
  http2_conversation with({say("part"), hold()});
  with.ask_many(50);
  for (auto& each : with.told)
    each.wait_for_body("part");
  with.server.hang_up(how);
  BOOST_TEST(with.ends() == "model_failed");
  for (auto& each : with.told)
    BOOST_TEST(each.body() == "part");
  BOOST_TEST(with.client.under_way() == 0U);
  BOOST_TEST(with.server.requests().size() == 50U);
  BOOST_TEST(with.server.connections() == 1U);
}

// Curl takes some of these endings for those of an idle connection.
BOOST_DATA_TEST_CASE(a_connection_that_is_lost_before_answers_ends_each_once,
                     data::make(farewells) + data::make(farewell::garbage),
                     how) {
  http2_conversation with([](const served_request& request) {
    return request.connection == 1 ? server_script{hold()}
                                   : server_script{say("text")};
  });
  with.ask_many(50);
  with.server.wait_for_requests(50);
  with.server.hang_up(how);
  with.ends();
  std::size_t failed = 0;
  for (auto& each : with.told) {
    const auto code = code_of(each.end());
    BOOST_TEST((code == "ok" || code == "model_failed"), code);
    failed += code == "model_failed" ? 1 : 0;
  }
  std::vector<int> times(50);
  for (const auto& request : with.server.requests())
    ++times[number_of(request)];
  BOOST_TEST(std::count(times.begin(), times.end(), 1)
             == static_cast<std::ptrdiff_t>(failed));
  BOOST_TEST(std::count(times.begin(), times.end(), 2)
             == static_cast<std::ptrdiff_t>(50 - failed));
}

BOOST_DATA_TEST_CASE(an_idle_connection_that_the_server_closed_is_replaced,
                     data::make(farewells),
                     how) {
  http2_conversation with({say("text")});
  for (std::size_t i = 1; i <= 4; ++i) {
    with.ask_many(3);
    BOOST_TEST(with.ends() == "ok");
    BOOST_TEST(with.server.connections() >= i);
    with.server.hang_up(how);
    with.server.wait_for_ends(with.server.connections());
  }
  BOOST_TEST(with.server.requests().size() == 12U);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
