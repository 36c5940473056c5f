// Sending: batches, retries, full queues, and receivers that are away.

#include "troupe/telemetry/otlp/sender.hpp"

#include "../models/http_server.hpp"
#include "../runtime/runtime_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(telemetry_sender)

namespace {

/// A sender of spans to one URL, in simulated time.
struct sending {
  explicit sending(const std::string& url) {
    chosen.traces.url = url;
    chosen.environment = environment;
    chosen.on_warning = [this](const std::string& text) {
      warning = text;
      warnings.add();
    };
  }

  telemetry::sender& start() {
    line = std::make_unique<telemetry::sender>(
      chosen, std::vector<telemetry::instrument>());
    return *line;
  }

  std::shared_ptr<watched_environment> environment
    = std::make_shared<watched_environment>(1);
  telemetry::options chosen;
  std::string warning; // Read after `warnings`.
  tally warnings;
  std::unique_ptr<telemetry::sender> line; // Ends first.
};

} // namespace

BOOST_AUTO_TEST_CASE(records_of_some_seconds_share_a_request) {
  http_server receiver(server_script{say(whole(""))});
  sending on(receiver.url("/v1/traces"));
  auto& line = on.start();
  line.give(telemetry::span());
  on.environment->timers.await(1);
  line.give(telemetry::span());
  BOOST_TEST(receiver.requests().empty());
  on.environment->advance(5s);
  receiver.wait_for_requests(1);
  BOOST_TEST(line.flush(patience));
  BOOST_TEST(line.counts().sent == 2);
  const auto requests = receiver.requests();
  BOOST_TEST(requests.size() == 1);
  BOOST_TEST(requests.at(0).line == "POST /v1/traces HTTP/1.1");
  BOOST_TEST(requests.at(0).header("content-type") == "application/x-protobuf");
}

BOOST_AUTO_TEST_CASE(a_full_batch_is_sent_at_once) {
  http_server receiver(server_script{say(whole(""))});
  sending on(receiver.url());
  on.chosen.batch_max = 2;
  auto& line = on.start();
  line.give(telemetry::span());
  line.give(telemetry::span());
  receiver.wait_for_requests(1);
}

BOOST_AUTO_TEST_CASE(headers_and_json_are_sent_as_chosen) {
  http_server receiver(server_script{say(whole("{}"))});
  sending on(receiver.url());
  on.chosen.traces.form = telemetry::wire_form::json;
  on.chosen.traces.headers = {{"api-key", "k"}};
  auto& line = on.start();
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  const auto sent = receiver.requests().at(0);
  BOOST_TEST(sent.header("content-type") == "application/json");
  BOOST_TEST(sent.header("api-key") == "k");
  BOOST_TEST(parse_json(sent.body).value().contains("resourceSpans"));
}

BOOST_AUTO_TEST_CASE(a_busy_receiver_gets_the_same_request_later) {
  std::atomic<int> count{0};
  http_server receiver([&count](const served_request&) -> server_script {
    return {
      say(++count == 1 ? whole("", 503, "Retry-After: 7\r\n") : whole(""))};
  });
  sending on(receiver.url());
  auto& line = on.start();
  line.give(telemetry::span());
  on.environment->timers.await(1);
  on.environment->advance(5s);
  receiver.wait_for_requests(1);
  on.environment->timers.await(2);
  on.environment->advance(6s);
  BOOST_TEST(receiver.requests().size() == 1);
  on.environment->advance(1s);
  receiver.wait_for_requests(2);
  BOOST_TEST(line.flush(patience));
  BOOST_TEST(line.counts().sent == 1);
  BOOST_TEST(line.counts().dropped == 0);
  const auto requests = receiver.requests();
  BOOST_TEST(requests.at(0).body == requests.at(1).body);
}

BOOST_AUTO_TEST_CASE(a_refused_request_is_dropped_and_told) {
  http_server receiver(server_script{say(whole("no", 400))});
  sending on(receiver.url());
  auto& line = on.start();
  line.give(telemetry::span());
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  on.warnings.await(1);
  BOOST_TEST(line.counts().dropped == 2);
  BOOST_TEST(on.warning.find("2 spans and log records") != std::string::npos);
  BOOST_TEST(on.warning.find("status 400") != std::string::npos);
  BOOST_TEST(receiver.requests().size() == 1);
}

BOOST_AUTO_TEST_CASE(a_full_queue_drops_new_records_and_counts_them) {
  http_server receiver(server_script{hold(), say(whole(""))});
  sending on(receiver.url());
  on.chosen.queue_max = 4;
  on.chosen.batch_max = 1;
  auto& line = on.start();
  line.give(telemetry::span());
  // The first one is on its way, so the queue is empty.
  receiver.wait_for_requests(1);
  for (int count = 0; count < 7; ++count)
    line.give(telemetry::span());
  BOOST_TEST(line.counts().dropped == 3);
  receiver.let_go();
  on.warnings.await(1);
  BOOST_TEST(on.warning.find("the queue is full") != std::string::npos);
  BOOST_TEST(line.flush(patience));
  BOOST_TEST(line.counts().sent == 5);
}

BOOST_AUTO_TEST_CASE(drops_are_told_once_in_a_minute) {
  http_server receiver(server_script{say(whole("", 400))});
  sending on(receiver.url());
  auto& line = on.start();
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  on.warnings.await(1);
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  BOOST_TEST(on.warnings.count() == 1);
  on.environment->advance(1min);
  on.warnings.await(2);
  BOOST_TEST(on.warning.find("lost 2 spans") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_flush_does_not_wait_for_retries) {
  sending on(refusing_url());
  auto& line = on.start();
  line.give(telemetry::span());
  BOOST_TEST(line.flush(patience));
  BOOST_TEST(line.counts().dropped == 1);
}

BOOST_AUTO_TEST_CASE(a_silent_receiver_holds_up_neither_callers_nor_the_end) {
  http_server receiver(server_script{hold()});
  sending on(receiver.url());
  auto& line = on.start();
  line.give(telemetry::span());
  BOOST_TEST(!line.flush(1ms));
  receiver.wait_for_requests(1);
  on.line.reset();
}

BOOST_AUTO_TEST_SUITE_END()
