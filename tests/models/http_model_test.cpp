// Models over HTTP: retried and final failures, results that reach the caller,
// and the key, which only the server sees.

#include "troupe/models/formats/http_model.hpp"

#include "asked_model.hpp"
#include "tls_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(http_models)

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

BOOST_AUTO_TEST_CASE(a_redirect_is_an_error_that_names_its_target) {
  const auto told = [](const std::string& location, int status = 308) {
    asking on(in_turn({once(
      whole("<html>moved</html>", status, "Location: " + location + "\r\n"))}));
    const auto reason = on.text();
    BOOST_TEST(on.server.requests().size() == 1U);
    return std::pair(reason, on.server.url(""));
  };
  const auto has = [](const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  };
  const auto there
    = told("https://ann:pass@new.example/v2/chat/completions?key=q#f").first;
  BOOST_TEST(
    has(there,
        "status 308: the server redirects to "
        "https://new.example/v2/chat/completions, and redirects are not"),
    there);
  BOOST_TEST(has(there, "set base_url to that address"), there);
  for (const auto* hidden : {"ann", "pass", "key=", "#f", "?"})
    BOOST_TEST(!has(there, hidden), there);
  const auto [relative, server] = told("/elsewhere", 302);
  BOOST_TEST(has(relative, "redirects to " + server + "/elsewhere, and"),
             relative);
  for (const auto* none : {"", "mailto:ann@example.com"})
    BOOST_TEST(has(told(none).first, "status 308: moved"), told(none).first);
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

BOOST_AUTO_TEST_CASE(the_span_of_a_call_is_sent_as_headers) {
  const std::string parent
    = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  asking on(
    in_turn({once(whole(answer_of("hoo"))), once(whole(answer_of("hoo")))}));
  http_model model(on.options);
  const auto ask = [&model, &on](const trace_context& trace) {
    std::promise<void> ended;
    auto request = on.request();
    request.trace = trace;
    model.generate(std::move(request), [&ended](result<model_response> answer) {
      if (!answer || !answer->partial)
        ended.set_value();
    });
    ended.get_future().wait();
  };
  trace_context trace;
  ask(trace);
  trace.parent = parent;
  trace.state = "vendor=x";
  ask(trace);
  const auto requests = on.server.requests();
  BOOST_TEST_REQUIRE(requests.size() == 2U);
  BOOST_TEST(requests[0].header("traceparent").empty());
  BOOST_TEST(requests[0].header("tracestate").empty());
  BOOST_TEST(requests[1].header("traceparent") == parent);
  BOOST_TEST(requests[1].header("tracestate") == "vendor=x");
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

// The waits of a model that is always refused, in milliseconds.
std::vector<std::int64_t>
waits_of(const std::shared_ptr<simulated_environment>& time,
         std::optional<std::uint64_t> seed) {
  asking on(in_turn({once(whole(refusal_of("later"), 503))}));
  on.environment = time;
  on.options.seed = seed;
  on.options.retries.first = 1h;
  on.options.retries.longest = 10h;
  on.options.retries.attempts_max = 5;
  std::vector<std::int64_t> waits;
  on.options.on_retry
    = [&](const model_retry& told) { waits.push_back(told.wait.count()); };
  std::promise<void> ended;
  http_model model(on.options);
  model.generate(on.request(), [&ended](const auto&) { ended.set_value(); });
  auto end = ended.get_future();
  while (end.wait_for(0s) != std::future_status::ready)
    if (time->waiting() > 0)
      time->advance(10h);
  return waits;
}

BOOST_AUTO_TEST_CASE(two_models_and_two_processes_wait_differently) {
  const auto time_of = [](std::uint64_t seed) {
    return std::make_shared<simulated_environment>(seed);
  };
  const auto first = time_of(1);
  const auto waits = waits_of(first, {});
  BOOST_TEST(waits.size() == 4U);
  BOOST_TEST((waits != waits_of(first, {})));      // Another model.
  BOOST_TEST((waits != waits_of(time_of(2), {}))); // Another process.
  BOOST_TEST((waits == waits_of(time_of(1), {}))); // The same one, replayed.
  const auto seeded = waits_of(time_of(1), 7);
  BOOST_TEST((seeded == waits_of(time_of(2), 7)));
  BOOST_TEST((seeded != waits_of(time_of(1), 8)));
}

BOOST_AUTO_TEST_CASE(a_retry_that_would_take_too_long_is_none) {
  asking on(
    in_turn({once(whole(refusal_of("x"), 429, "Retry-After: 3600\r\n"))}));
  BOOST_TEST(code_of(on.ask()) == "model_failed");
  BOOST_TEST(on.server.requests().size() == 1U);
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
