#include "troupe/models/http/client.hpp"

#include "../outcome.hpp"
#include "http_server.hpp"
#include "http_witness.hpp"
#include "tls_server.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace troupe {

namespace {

using namespace std::chrono_literals;
using namespace troupe::testing;

} // namespace

BOOST_AUTO_TEST_SUITE(http_client_failures)

struct broken_answer {
  const char* what;
  server_script script;
  const char* reason;
  const char* body = "";

  friend std::ostream& operator<<(std::ostream& out, const broken_answer& it) {
    return out << it.what;
  }
};

const std::vector<broken_answer> broken_answers{
  {"FIN at once", {close()}, "Empty reply"},
  {"RST at once", {reset()}, "reset"},
  {"FIN in the status line", {say("HTTP/1.1 20"), close()}, ""},
  {"FIN in the head",
   {say("HTTP/1.1 200 OK\r\nContent-Le"), close()},
   "inside the answer's headers"},
  {"RST in the head",
   {say("HTTP/1.1 200 OK\r\nContent-Le"), hold(), reset()},
   ""},
  {"FIN in the body",
   {say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"), close()},
   "5 bytes remaining",
   "part"},
  {"RST in the body",
   {say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"), hold(), reset()},
   "reset",
   "part"},
  {"FIN between chunks",
   {say(chunked_head() + chunk("part")), close()},
   "outstanding read data",
   "part"},
  {"FIN in a chunk", {say(chunked_head() + "9\r\npart"), close()}, "", "part"},
  {"RST in a chunk",
   {say(chunked_head() + "9\r\npart"), hold(), reset()},
   "reset",
   "part"},
  {"a chunk of no size", {say(chunked_head() + "zz\r\npart")}, "chunk"},
  {"no HTTP", {say("SSH-2.0-OpenSSH_9.2\r\n"), close()}, "HTTP/0.9"},
  {"zeros", {say(std::string(4096, '\0')), close()}, "HTTP/0.9"},
  {"a head without end",
   {say("HTTP/1.1 200 OK\r\n"
        + fmt::format("{}",
                      fmt::join(std::vector<std::string>(
                                  20, "X: " + std::string(60'000, 'x')),
                                "\r\n"))),
    hold()},
   "headers are larger than 262144 bytes in all"},
  {"a header of 300 KB",
   {say("HTTP/1.1 200 OK\r\nX: " + std::string(300'000, 'x')
        + "\r\nContent-Length: 0\r\n\r\n"),
    hold()},
   "headers are larger than 102400 bytes in one line"}};

BOOST_DATA_TEST_CASE(an_answer_that_breaks_off_or_is_none_is_a_failure,
                     boost::unit_test::data::make(broken_answers),
                     broken) {
  http_server server(broken.script);
  witness told;
  http_client client;
  client.start(request_to(server.url("/path?key=s3cret")), told.handler());
  if (*broken.body != '\0')
    told.wait_for_body(broken.body);
  server.let_go();
  const auto ended = text_of(told.end());
  BOOST_TEST(ended.starts_with(fmt::format(
               "model_failed request to 127.0.0.1:{}: ", server.port())),
             ended);
  BOOST_TEST(has(ended, broken.reason), ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
  BOOST_TEST(told.body() == broken.body);
  BOOST_TEST(told.ends() == 1);
}

BOOST_AUTO_TEST_CASE(a_refused_connection_is_a_failure) {
  BOOST_TEST(code_of(end_of(request_to(refusing_url()))) == "model_failed");
}

BOOST_AUTO_TEST_CASE(a_host_that_does_not_exist_is_a_failure) {
  const auto ended
    = text_of(end_of(request_to("http://nowhere.invalid/p?k=v")));
  BOOST_TEST(ended.starts_with("model_failed request to nowhere.invalid: "),
             ended);
}

BOOST_DATA_TEST_CASE(
  what_is_no_url_of_http_is_refused,
  boost::unit_test::data::make(
    {"", "nonsense s3cret", "file:///etc/s3cret", "ftp://a/s3cret", "http://"}),
  url) {
  const auto ended = text_of(end_of(request_to(url)));
  BOOST_TEST(ended.starts_with("invalid_argument "), ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
}

BOOST_AUTO_TEST_CASE(a_header_cannot_smuggle_in_another) {
  http_server server({say(whole(""))});
  for (const auto& header : http_headers{{"X", "s3cret\r\nY: z"},
                                         {"X\nY", "s3cret"},
                                         {"X", std::string("s3cret\0", 7)},
                                         {"X", "s3cret\x01"},
                                         {"", "s3cret"}}) {
    auto request = request_to(server.url());
    request.headers = {header};
    const auto ended = text_of(end_of(request));
    BOOST_TEST(ended.starts_with("invalid_argument "), ended);
    BOOST_TEST(!has(ended, "s3cret"), ended);
  }
  BOOST_TEST(server.connections() == 0U);
}

BOOST_DATA_TEST_CASE(
  no_secret_of_the_url_or_the_proxy_is_told,
  boost::unit_test::data::make({"bogus://user:s3cret@127.0.0.1:1",
                                "http://user:s3cret@127.0.0.1:1",
                                "http://user:s3cret@nowhere.invalid",
                                "user:s3cret@:::",
                                "//s3cret"}),
  proxy) {
  auto request = request_to("http://user:s3cret@host.invalid/p?key=s3cret");
  request.headers = {{"Authorization", "Bearer s3cret"}};
  const auto ended = text_of(end_of(request, {.proxy = proxy}));
  BOOST_TEST(ended.starts_with("model_failed request to host.invalid: "),
             ended);
  BOOST_TEST(!has(ended, "s3cret"), ended);
}

BOOST_AUTO_TEST_CASE(a_proxy_is_asked_in_place_of_the_host) {
  http_server proxy({say(whole("by proxy"))});
  BOOST_TEST(
    text_of(end_of(request_to("http://host.invalid/p"), {.proxy = proxy.url()}))
    == "ok ");
  BOOST_TEST(proxy.requests().at(0).line
             == "POST http://host.invalid/p HTTP/1.1");
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_ends_its_request_alone) {
  http_server server({say(chunked_head()), say(chunk("a")), hold()});
  witness thrower;
  witness other;
  http_client client({.threads = 1});
  thrower.on_piece = [] { throw std::runtime_error("dropped it"); };
  client.start(request_to(server.url()), other.handler());
  client.start(request_to(server.url()), thrower.handler());
  const auto ended = text_of(thrower.end());
  BOOST_TEST(ended.starts_with("internal "), ended);
  BOOST_TEST(has(ended, "dropped it"), ended);
  server.wait_for_hang_ups(1);
  other.wait_for_body("a");
  BOOST_TEST(client.under_way() == 1U);
}

BOOST_AUTO_TEST_CASE(a_handler_that_throws_at_its_end_harms_nobody) {
  http_server server({say(whole("text"))});
  http_client client;
  client.start(request_to(server.url()),
               {.on_end = [](const http_end&) { throw 1; }});
  server.wait_for_requests(1);
  witness told;
  client.start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
}

BOOST_AUTO_TEST_CASE(functions_that_are_not_given_are_not_needed) {
  http_server server({say(whole("text"))});
  std::promise<std::string> ended;
  http_client client;
  client.start(request_to(server.url()), {});
  client.start(request_to(server.url()), {.on_end = [&](const http_end& end) {
                 ended.set_value(text_of(end.outcome));
               }});
  BOOST_TEST(ended.get_future().get() == "ok ");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http_client_timeouts)

BOOST_AUTO_TEST_CASE(a_connection_that_never_stands_is_given_up) {
  deaf_listener deaf;
  auto request = request_to(deaf.url());
  request.timeouts.connect = 50ms;
  const auto ended = text_of(end_of(request));
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "no connection after 50 ms"), ended);
}

BOOST_AUTO_TEST_CASE(a_server_that_says_nothing_is_given_up) {
  http_server server({hold()});
  auto request = request_to(server.url());
  request.timeouts.first_byte = 50ms;
  const auto ended = text_of(end_of(request));
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "no answer after 50 ms"), ended);
  server.wait_for_hang_ups(1);
}

BOOST_AUTO_TEST_CASE(an_answer_that_stalls_is_given_up) {
  http_server server({say(chunked_head() + chunk("part")), hold()});
  witness told;
  http_client client;
  auto request = request_to(server.url());
  request.timeouts.between = 50ms;
  // If the client checked its time-outs only when one of these is due, it would
  // report the total time-out instead.
  request.timeouts.connect = 20s;
  request.timeouts.total = 20s;
  client.start(request, told.handler());
  const auto ended = text_of(told.end());
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "paused for 50 ms"), ended);
  BOOST_TEST(told.body() == "part");
  server.wait_for_hang_ups(1);
}

// The answer begins later than the longest pause allows. That limit counts only
// after its first byte.
BOOST_AUTO_TEST_CASE(the_time_to_the_first_byte_is_no_pause) {
  http_server server({wait_for(300ms), say(whole("text"))});
  auto request = request_to(server.url());
  request.timeouts.between = 100ms;
  BOOST_TEST(text_of(end_of(request)) == "ok ");
}

BOOST_AUTO_TEST_CASE(a_drip_that_never_pauses_runs_into_the_total) {
  http_server server(drip(whole(std::string(20'000, 'x')), 1ms));
  auto request = request_to(server.url());
  request.timeouts.total = 200ms;
  const auto ended = text_of(end_of(request));
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "not finished after 200 ms"), ended);
}

BOOST_AUTO_TEST_CASE(a_slow_drip_arrives_whole) {
  http_server server(drip(whole("slow but sure"), 1ms));
  witness told;
  http_client client;
  client.start(request_to(server.url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "slow but sure");
}

BOOST_AUTO_TEST_CASE(pauses_that_are_allowed_do_not_add_up) {
  server_script script{say("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n")};
  for (const auto& step : drip("12345678", 400ms))
    script.push_back(step);
  http_server server(script);
  auto request = request_to(server.url());
  request.timeouts.between = 2500ms;
  BOOST_TEST(text_of(end_of(request)) == "ok ");
}

BOOST_AUTO_TEST_CASE(a_request_that_waits_too_long_for_a_place_is_given_up) {
  http_server server({hold(), say(whole("text"))});
  witness first;
  witness second;
  http_client client({.requests_per_host = 1});
  // The first request has nothing due before the test gives up, and curl's last
  // timer is at 200 ms.
  auto patient = request_to(server.url());
  patient.timeouts.connect = patient.timeouts.between = 120s;
  client.start(patient, first.handler());
  auto request = request_to(server.url());
  request.timeouts.total = 400ms;
  client.start(request, second.handler());
  const auto ended = text_of(second.end());
  BOOST_TEST(ended.starts_with("deadline_exceeded "), ended);
  BOOST_TEST(has(ended, "still in the queue after 400 ms"), ended);
  server.let_go();
  BOOST_TEST(text_of(first.end()) == "ok ");
  BOOST_TEST(server.requests().size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(http_client_tls)

BOOST_FIXTURE_TEST_CASE(a_certificate_that_nobody_vouches_for_is_refused,
                        tls_server) {
  const auto ended = text_of(end_of(request_to(url())));
  BOOST_TEST(ended.starts_with("model_failed request to localhost:"), ended);
  BOOST_TEST(has(ended, "certificate"), ended);
}

BOOST_FIXTURE_TEST_CASE(a_certificate_that_is_given_is_accepted, tls_server) {
  witness told;
  http_client client({.certificates = certificate()});
  client.start(request_to(url()), told.handler());
  BOOST_TEST(text_of(told.end()) == "ok ");
  BOOST_TEST(told.body() == "in private");
}

BOOST_FIXTURE_TEST_CASE(certificates_may_be_named_by_the_environment,
                        tls_server) {
  ::setenv("SSL_CERT_FILE", certificate().c_str(), 1);
  const auto ended = end_of(request_to(url()));
  ::unsetenv("SSL_CERT_FILE");
  BOOST_TEST(text_of(ended) == "ok ");
}

BOOST_FIXTURE_TEST_CASE(a_certificate_of_another_host_is_refused, tls_server) {
  const auto ended = text_of(
    end_of(request_to(url("127.0.0.1")), {.certificates = certificate()}));
  BOOST_TEST(ended.starts_with("model_failed "), ended);
}

BOOST_FIXTURE_TEST_CASE(a_file_without_certificates_is_a_failure, tls_server) {
  const auto ended
    = text_of(end_of(request_to(url()), {.certificates = "/nowhere/cert.pem"}));
  BOOST_TEST(ended.starts_with("model_failed "), ended);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe
