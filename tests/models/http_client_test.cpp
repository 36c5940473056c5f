#include "troupe/models/http/client.hpp"

#include "../outcome.hpp"
#include "http_server.hpp"
#include "http_witness.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace troupe {

namespace {

using namespace troupe::testing;
namespace data = boost::unit_test::data;

} // namespace

BOOST_AUTO_TEST_SUITE(http_client_requests)

BOOST_AUTO_TEST_CASE(a_request_is_posted_as_it_is_given) {
  http_server server({say(whole("yes"))});
  auto request = request_to(server.url("/v1?key=k"));
  request.headers = {{"X-Api-Key", "s3cret"}, {"X-Empty", ""}};
  request.body = std::string("a\0b", 3);
  BOOST_TEST(text_of(end_of(request)) == "ok ");
  const auto served = server.requests().at(0);
  BOOST_TEST(served.line == "POST /v1?key=k HTTP/1.1");
  BOOST_TEST(served.body == request.body);
  BOOST_TEST(served.header("x-api-key") == "s3cret");
  for (const auto& [name, text] : served.headers)
    BOOST_TEST((name != "content-type" && name != "expect"));
}

BOOST_AUTO_TEST_CASE(a_large_body_is_sent_without_asking_first) {
  http_server server({say(whole(""))});
  auto request = request_to(server.url());
  request.body.assign(std::size_t{3} << 20U, 'b');
  BOOST_TEST(text_of(end_of(request)) == "ok ");
  BOOST_TEST(server.requests().at(0).header("expect").empty());
  BOOST_TEST(server.requests().at(0).body.size() == request.body.size());
}

BOOST_AUTO_TEST_CASE(an_answer_is_told_by_head_pieces_and_end) {
  http_server server({say(chunked_head()),
                      say(chunk("one ")),
                      hold(),
                      say(chunk("two") + "0\r\nX-Trailer: t\r\n\r\n")});
  witness told;
  http_client client;
  client.start(request_to(server.url()), told.handler());
  told.wait_for_body("one ");
  BOOST_TEST(told.status() == 200);
  BOOST_TEST(told.header("Transfer-Encoding") == "chunked");
  BOOST_TEST(client.under_way() == 1U);
  server.let_go();
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "one two");
  BOOST_TEST(told.heads() == 1);
  BOOST_TEST(told.header("X-Trailer") == "absent");
  BOOST_TEST(client.under_way() == 0U);
}

BOOST_DATA_TEST_CASE(
  an_answer_of_any_status_ends_well,
  boost::unit_test::data::make({200, 204, 302, 401, 429, 503}),
  status) {
  http_server server(
    {say(whole(status == 204 ? "" : "text",
               status,
               "Location: /elsewhere\r\nRetry-After: 7\r\n"))});
  witness told;
  http_client client;
  client.start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.status() == status);
  BOOST_TEST(told.header("Retry-After") == "7");
  BOOST_TEST(server.requests().size() == 1U);
}

BOOST_AUTO_TEST_CASE(heads_before_the_answer_are_not_told) {
  http_server server(
    {say("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), say(whole("text"))});
  witness told;
  http_client client;
  client.start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.heads() == 1);
  BOOST_TEST(told.status() == 200);
  BOOST_TEST(told.header("Link") == "absent");
}

BOOST_AUTO_TEST_CASE(a_compressed_body_is_told_decoded) {
  // `printf hello | gzip -n`.
  const std::string packed(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86"
    "\xa6\x10\x36\x05\x00\x00\x00",
    25);
  http_server server({say(whole(packed, 200, "Content-Encoding: gzip\r\n"))});
  witness told;
  http_client client;
  client.start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "hello");
}

BOOST_AUTO_TEST_CASE(requests_one_after_another_share_a_connection) {
  http_server server({say(whole("text"))});
  http_client client;
  for (int i = 0; i < 20; ++i) {
    witness told;
    client.start(request_to(server.url()), told.handler());
    BOOST_TEST(text_of(told.end()) == "ok ");
  }
  BOOST_TEST(server.connections() == 1U);
}

BOOST_AUTO_TEST_CASE(a_connection_that_the_server_closed_is_replaced) {
  http_server server({say(whole("text")), close()});
  http_client client;
  for (int i = 0; i < 5; ++i) {
    witness told;
    client.start(request_to(server.url()), told.handler());
    BOOST_TEST(text_of(told.end()) == "ok ");
  }
  BOOST_TEST(server.connections() == 5U);
}

// Six connections are idle when the last request is sent. The server resets
// each one on which that request arrives.
BOOST_AUTO_TEST_CASE(a_request_is_sent_once_more_but_not_twice) {
  http_server server([](const served_request& request) {
    return request.line.starts_with("POST /last ")
             ? server_script{reset()}
             : server_script{hold(), say(whole("text"))};
  });
  std::vector<witness> told(6);
  http_client client({.threads = 1});
  for (auto& each : told)
    client.start(request_to(server.url()), each.handler());
  server.wait_for_requests(6);
  server.let_go();
  for (auto& each : told)
    BOOST_TEST(text_of(each.end()) == "ok ");
  witness last;
  client.start(request_to(server.url("/last")), last.handler());
  const auto ended = text_of(last.end());
  BOOST_TEST(ended.starts_with("model_failed "), ended);
  BOOST_TEST(last.ends() == 1);
  BOOST_TEST(server.requests().size() == 8U);
}

BOOST_AUTO_TEST_CASE(requests_at_the_same_time_do_not_wait_for_each_other) {
  http_server server({hold(), say(whole("text"))});
  std::vector<witness> told(300);
  http_client client;
  for (auto& each : told)
    client.start(request_to(server.url()), each.handler());
  server.wait_for_requests(300);
  server.let_go();
  for (auto& each : told)
    BOOST_TEST(text_of(each.end()) == "ok ");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http_client_cancelling)

BOOST_AUTO_TEST_CASE(a_cancelled_request_closes_its_connection) {
  http_server server({hold()});
  witness told;
  http_client client;
  const auto call = client.start(request_to(server.url()), told.handler());
  server.wait_for_requests(1);
  call.cancel();
  BOOST_TEST(code_of(told.end()) == "cancelled");
  server.wait_for_hang_ups(1);
  call.cancel();
  BOOST_TEST(told.ends() == 1);
}

BOOST_AUTO_TEST_CASE(a_request_is_cancelled_while_it_connects) {
  deaf_listener deaf;
  witness first;
  witness second;
  http_client client;
  // The second request waits until the first one has a connection.
  const auto one = client.start(request_to(deaf.url()), first.handler());
  const auto other = client.start(request_to(deaf.url()), second.handler());
  other.cancel();
  BOOST_TEST(code_of(second.end()) == "cancelled");
  one.cancel();
  BOOST_TEST(code_of(first.end()) == "cancelled");
}

BOOST_AUTO_TEST_CASE(a_waiting_request_is_cancelled_where_it_waits) {
  http_server server({hold(), say(whole("text"))});
  witness first;
  witness second;
  witness third;
  http_client client({.requests_per_host = 1});
  client.start(request_to(server.url("/1")), first.handler());
  const auto waits
    = client.start(request_to(server.url("/2")), second.handler());
  client.start(request_to(server.url("/3")), third.handler());
  waits.cancel();
  BOOST_TEST(code_of(second.end()) == "cancelled");
  server.let_go();
  BOOST_TEST(text_of(third.end()) == "ok ");
  BOOST_TEST(server.requests().at(1).line == "POST /3 HTTP/1.1");
}

BOOST_AUTO_TEST_CASE(a_handler_that_cancels_hears_only_the_end) {
  http_server server(
    {say(chunked_head() + chunk("one") + chunk("two") + "0\r\n\r\n")});
  witness told;
  std::promise<http_call> started;
  http_client client;
  auto call = started.get_future().share();
  int pieces = 0;
  told.on_piece = [&] {
    ++pieces;
    call.get().cancel();
  };
  started.set_value(client.start(request_to(server.url()), told.handler()));
  BOOST_TEST(code_of(told.end()) == "cancelled");
  BOOST_TEST(pieces == 1);
}

BOOST_AUTO_TEST_CASE(a_call_may_be_cancelled_when_its_client_is_gone) {
  http_server server({hold()});
  witness told;
  http_call call;
  call.cancel();
  {
    http_client client;
    call = client.start(request_to(server.url()), told.handler());
  }
  BOOST_TEST(code_of(told.end()) == "cancelled");
  call.cancel();
  BOOST_TEST(told.ends() == 1);
}

BOOST_AUTO_TEST_CASE(cancelling_races_with_the_end_and_one_of_both_is_told) {
  http_server server({say(whole("text"))});
  std::vector<witness> told(400);
  http_client client({.requests_per_host = 20});
  std::vector<http_call> calls;
  for (auto& each : told)
    calls.push_back(client.start(request_to(server.url()), each.handler()));
  std::vector<std::jthread> threads;
  for (std::size_t first = 0; first < 3; ++first)
    threads.emplace_back([&calls, first] {
      for (std::size_t i = first; i < calls.size(); i += 2)
        calls[i].cancel();
    });
  threads.clear();
  for (auto& each : told) {
    const auto code = code_of(each.end());
    BOOST_TEST((code == "ok" || code == "cancelled"), code);
    BOOST_TEST(each.ends() == 1);
  }
  BOOST_TEST(client.under_way() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http_client_places)

BOOST_AUTO_TEST_CASE(requests_that_wait_are_served_as_they_came) {
  http_server server({hold(), say(whole("text"))});
  std::vector<witness> told(50);
  http_client client({.requests_per_host = 1});
  for (std::size_t i = 0; i < told.size(); ++i)
    client.start(request_to(server.url(fmt::format("/{}", i))),
                 told[i].handler());
  server.wait_for_requests(1);
  BOOST_TEST(client.under_way() == 50U);
  server.let_go();
  for (auto& each : told)
    BOOST_TEST(text_of(each.end()) == "ok ");
  const auto served = server.requests();
  for (std::size_t i = 0; i < told.size(); ++i)
    BOOST_TEST(served.at(i).line == fmt::format("POST /{} HTTP/1.1", i));
  BOOST_TEST(server.connections() == 1U);
}

BOOST_AUTO_TEST_CASE(a_full_queue_turns_requests_away_but_not_those_of_others) {
  http_server full({hold(), say(whole("text"))});
  http_server other({say(whole("text"))});
  std::vector<witness> told(6);
  http_client client({.requests_per_host = 2, .waiting_per_host = 3});
  for (auto& each : told)
    client.start(request_to(full.url()), each.handler());
  const auto ended = text_of(told.back().end());
  BOOST_TEST(ended.starts_with("busy "), ended);
  BOOST_TEST(has(ended, "3 other requests wait"), ended);
  witness elsewhere;
  client.start(request_to(other.url()), elsewhere.handler());
  BOOST_TEST(text_of(elsewhere.end()) == "ok ");
  full.let_go();
  for (std::size_t i = 0; i < 5; ++i)
    BOOST_TEST(text_of(told[i].end()) == "ok ");
}

// This holds even when the end is known at once.
BOOST_AUTO_TEST_CASE(the_end_is_never_told_within_start) {
  http_client client({.requests_per_host = 1, .waiting_per_host = 0});
  http_server server({hold()});
  for (const auto& url :
       {std::string("nonsense"), server.url(), server.url()}) {
    const auto caller = std::this_thread::get_id();
    witness told;
    std::atomic<bool> within{false};
    told.on_ended = [&] { within = std::this_thread::get_id() == caller; };
    const auto call = client.start(request_to(url), told.handler());
    witness more;
    if (url != "nonsense")
      client.start(request_to(url), more.handler());
    call.cancel();
    const auto ended = told.end();
    BOOST_TEST(!ended);
    BOOST_TEST(!within);
    if (url != "nonsense")
      BOOST_TEST(code_of(more.end()) == "busy");
  }
}

BOOST_AUTO_TEST_CASE(a_handler_may_start_the_next_request) {
  http_server server({say(whole("text"))});
  witness first;
  witness second;
  http_client client({.requests_per_host = 1});
  first.on_ended
    = [&] { client.start(request_to(server.url()), second.handler()); };
  client.start(request_to(server.url()), first.handler());
  BOOST_TEST(text_of(second.end()) == "ok ");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http_client_closing)

BOOST_AUTO_TEST_CASE(
  all_that_is_under_way_is_cancelled_before_the_client_is_gone) {
  http_server server({hold()});
  deaf_listener deaf;
  std::vector<witness> told(600);
  witness connecting;
  {
    http_client client({.requests_per_host = 300});
    client.start(request_to(deaf.url()), connecting.handler());
    for (auto& each : told)
      client.start(request_to(server.url()), each.handler());
    server.wait_for_requests(300);
  }
  BOOST_TEST(connecting.ends() == 1);
  for (auto& each : told) {
    BOOST_REQUIRE(each.ends() == 1);
    BOOST_TEST(code_of(each.end()) == "cancelled");
  }
  server.wait_for_hang_ups(300);
}

BOOST_AUTO_TEST_CASE(a_client_that_closes_waits_for_its_handlers) {
  http_server server({say(chunked_head() + chunk("a")), hold()});
  witness told;
  witness another;
  witness waiting;
  std::promise<void> entered;
  std::atomic<bool> done{false};
  {
    http_client client({.requests_per_host = 1});
    told.on_piece = [&] {
      entered.set_value();
      std::this_thread::yield();
    };
    // A request started by a handler during the shutdown ends as well.
    told.on_ended = [&] {
      client.start(request_to(server.url()), another.handler());
      client.start(request_to(server.url()), waiting.handler());
      done = true;
    };
    client.start(request_to(server.url()), told.handler());
    entered.get_future().get();
  }
  BOOST_TEST(done);
  BOOST_TEST(told.ends() == 1);
  BOOST_TEST(another.ends() == 1);
  BOOST_TEST(code_of(another.end()) == "cancelled");
  BOOST_TEST(waiting.ends() == 1);
  BOOST_TEST(code_of(waiting.end()) == "cancelled");
}

BOOST_DATA_TEST_CASE(a_handler_may_be_the_last_to_own_its_client,
                     data::make({false, true}),
                     at_the_end) {
  http_server server([](const served_request& request) -> server_script {
    return request.line.starts_with("POST /held ")
             ? server_script{say(chunked_head() + chunk("a")), hold()}
             : server_script{say(whole("text"))};
  });
  std::vector<witness> held(10);
  witness last;
  auto client = std::make_shared<http_client>();
  for (auto& each : held)
    client->start(request_to(server.url("/held")), each.handler());
  for (auto& each : held)
    each.wait_for_body("a");
  const std::weak_ptr<http_client> seen = client;
  std::promise<void> owned;
  auto let_go = [owner = client, owned = owned.get_future().share()]() mutable {
    owned.wait();
    owner.reset();
  };
  (at_the_end ? last.on_ended : last.on_piece) = std::move(let_go);
  client->start(request_to(server.url("/")), last.handler());
  client.reset();
  owned.set_value();
  BOOST_TEST(text_of(last.end()) == "ok ");
  BOOST_TEST(seen.expired());
  for (auto& each : held)
    BOOST_TEST(code_of(each.end()) == "cancelled");
  server.wait_for_hang_ups(held.size());
}

BOOST_AUTO_TEST_CASE(
  requests_whose_host_is_being_resolved_end_with_the_client) {
  witness told;
  {
    http_client client({.requests_per_host = 1});
    for (int i = 0; i < 20; ++i)
      client.start(request_to("http://nowhere.invalid/"), {});
    client.start(request_to("http://nowhere.invalid/"), told.handler());
  }
  BOOST_TEST(told.ends() == 1);
}

BOOST_AUTO_TEST_CASE(the_shared_client_is_one) {
  http_server server({say(whole("text"))});
  BOOST_TEST(shared_http_client() == shared_http_client());
  witness told;
  shared_http_client()->start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
