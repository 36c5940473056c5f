// The bytes and the JSON of requests.

#include "troupe/telemetry/otlp/json_form.hpp"
#include "troupe/telemetry/otlp/outcome.hpp"
#include "troupe/telemetry/otlp/protobuf.hpp"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <numeric>
#include <string>

using namespace troupe;
using namespace troupe::telemetry;

BOOST_AUTO_TEST_SUITE(otlp_forms)

namespace {

std::string hexadecimal_of(const std::string& bytes) {
  std::string text;
  for (const auto each : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(each));
  return text;
}

origin small_origin() {
  origin from;
  from.resource = {attribute("service.name", "troupe")};
  from.scope = "troupe";
  return from;
}

span failed_span() {
  span made;
  std::iota(made.trace.begin(), made.trace.end(), std::uint8_t{0});
  std::iota(made.id.begin(), made.id.end(), std::uint8_t{0});
  made.name = "invoke_agent x";
  made.began = 1;
  made.ended = 2;
  made.attributes = {attribute("gen_ai.usage.input_tokens", std::int64_t{7}),
                     attribute("gen_ai.response.finish_reasons",
                               std::vector<std::string>{"stop"})};
  made.has_failed = true;
  made.failure = "x";
  return made;
}

span_request request_of(span made) {
  span_request sent;
  sent.spans.push_back(std::move(made));
  return sent;
}

histogram_request durations() {
  histogram_table table({{"d", "", "s", {1, 2}}});
  for (const double each : {0.5, 1.0, 9.0})
    table.record(0, each, {attribute("k", "v")});
  return {table.all(), 3, 4};
}

} // namespace

// These bytes were made by the library of OpenTelemetry.
BOOST_AUTO_TEST_CASE(a_span_has_the_bytes_of_opentelemetry) {
  BOOST_TEST(
    hexadecimal_of(protobuf_of(small_origin(), request_of(failed_span())))
    == "0ac2010a1a0a180a0c736572766963652e6e616d6512080a0674726f75706512a3010a"
       "080a0674726f7570651296010a10000102030405060708090a0b0c0d0e0f1208000102"
       "03040506072a0e696e766f6b655f6167656e7420783001390100000000000000410200"
       "0000000000004a1f0a1967656e5f61692e75736167652e696e7075745f746f6b656e73"
       "120218074a2c0a1e67656e5f61692e726573706f6e73652e66696e6973685f72656173"
       "6f6e73120a2a080a060a0473746f707a051201781802");
}

BOOST_AUTO_TEST_CASE(ids_are_hexadecimal_and_integers_text_in_json) {
  const auto whole = json_of(small_origin(), request_of(failed_span()));
  const auto& scoped = whole.at("resourceSpans").at(0).at("scopeSpans").at(0);
  const auto& shown = scoped.at("spans").at(0);
  BOOST_TEST(shown.at("traceId") == "000102030405060708090a0b0c0d0e0f");
  BOOST_TEST(shown.at("spanId") == "0001020304050607");
  BOOST_TEST(!shown.contains("parentSpanId"));
  BOOST_TEST(shown.at("kind") == 1);
  BOOST_TEST(shown.at("startTimeUnixNano") == "1");
  BOOST_TEST(shown.at("status").at("code") == 2);
  BOOST_TEST(shown.at("attributes").at(0).at("value").at("intValue") == "7");
  BOOST_TEST(shown.at("attributes")
               .at(1)
               .at("value")
               .at("arrayValue")
               .at("values")
               .at(0)
               .at("stringValue")
             == "stop");
}

BOOST_AUTO_TEST_CASE(a_value_on_a_bound_counts_below_it) {
  const auto whole = json_of(small_origin(), durations());
  const auto& point = whole.at("resourceMetrics")
                        .at(0)
                        .at("scopeMetrics")
                        .at(0)
                        .at("metrics")
                        .at(0)
                        .at("histogram")
                        .at("dataPoints")
                        .at(0);
  BOOST_TEST(point.at("bucketCounts") == json::array({"2", "0", "1"}));
  BOOST_TEST(point.at("count") == "3");
  BOOST_TEST(point.at("sum") == 10.5);
  BOOST_TEST(point.at("min") == 0.5);
  BOOST_TEST(point.at("max") == 9);
}

BOOST_AUTO_TEST_CASE(a_histogram_keeps_a_bounded_number_of_points) {
  histogram_table table({{"d", "", "s", {1}}});
  for (std::size_t each = 0; each < histogram_table::points_max + 5; ++each)
    table.record(0, 1, {attribute("k", std::to_string(each))});
  const auto all = table.all();
  BOOST_TEST(all.at(0).points.size() == histogram_table::points_max + 1);
  std::uint64_t count = 0;
  for (const auto& each : all.at(0).points)
    count += each.count;
  BOOST_TEST(count == histogram_table::points_max + 5);
}

// More threads than a counter has parts of its own.
BOOST_AUTO_TEST_CASE(counts_of_many_threads_are_all_there) {
  constexpr std::uint64_t threads = 12;
  constexpr std::uint64_t rounds = 2'000;
  histogram_table table({{"none", "", "", {1}}, {"n", "", "", {1, 2, 10}}});
  std::vector<std::thread> counting;
  for (std::uint64_t number = 1; number <= threads; ++number)
    counting.emplace_back([&table, number] {
      for (std::uint64_t round = 0; round < rounds; ++round)
        table.count(1, number);
    });
  for (auto& each : counting)
    each.join();
  const auto all = table.all();
  BOOST_REQUIRE(all.size() == 1U);
  BOOST_TEST(all[0].of.name == "n");
  BOOST_REQUIRE(all[0].points.size() == 1U);
  const auto& point = all[0].points[0];
  BOOST_TEST(point.attributes.empty());
  BOOST_TEST(point.count == threads * rounds);
  BOOST_TEST(point.sum == 78. * rounds); // 1 + 2 + ... + 12
  BOOST_TEST(point.min == 1.);
  BOOST_TEST(point.max == 12.);
  BOOST_TEST(
    (point.buckets
     == std::vector<std::uint64_t>{rounds, rounds, 8 * rounds, 2 * rounds}));
}

BOOST_AUTO_TEST_CASE(text_that_is_not_utf8_does_not_spoil_a_request) {
  auto made = failed_span();
  made.failure = "bad \xff";
  const auto whole = json_of(small_origin(), request_of(made));
  BOOST_TEST(is_utf8(to_text(whole)));
  const auto bytes = protobuf_of(small_origin(), request_of(made));
  BOOST_TEST(bytes.find("bad \xef\xbf\xbd") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(refused_records_are_counted_from_the_answer) {
  BOOST_TEST(rejected_in_json(R"({"partialSuccess":{"rejectedSpans":"3"}})")
             == 3);
  BOOST_TEST(rejected_in_json(R"({"partialSuccess":{"rejectedLogRecords":4}})")
             == 4);
  BOOST_TEST(rejected_in_json("{}") == 0);
  BOOST_TEST(rejected_in_json("<html>") == 0);
  BOOST_TEST(rejected_in_protobuf(std::string("\x0a\x02\x08\x05")) == 5);
  BOOST_TEST(rejected_in_protobuf("\x08\x01") == 0);
  BOOST_TEST(rejected_in_protobuf("") == 0);
  BOOST_TEST(rejected_in_protobuf("<html>") == 0);
}

BOOST_AUTO_TEST_CASE(only_some_answers_allow_a_retry) {
  for (const long status : {0L, 429L, 502L, 503L, 504L})
    BOOST_TEST((outcome_of({status, {}, {}}) == outcome::again));
  for (const long status : {301L, 400L, 401L, 404L, 415L, 500L})
    BOOST_TEST((outcome_of({status, {}, {}}) == outcome::refused));
  BOOST_TEST((outcome_of({200, {}, {}}) == outcome::accepted));
}

BOOST_AUTO_TEST_CASE(the_receiver_may_choose_the_wait) {
  BOOST_TEST(wait_before_retry({503, std::chrono::seconds(7), {}}, 1).count()
             == 7);
  BOOST_TEST(
    wait_before_retry({503, std::chrono::seconds(86'400), {}}, 1).count()
    == 300);
  BOOST_TEST(wait_before_retry({503, {}, {}}, 1).count() == 1);
  BOOST_TEST(wait_before_retry({503, {}, {}}, 4).count() == 8);
}

BOOST_AUTO_TEST_SUITE_END()
