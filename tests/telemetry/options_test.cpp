// The variables of OpenTelemetry.

#include "troupe/telemetry/options.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <map>
#include <string>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(telemetry_options)

namespace {

using variable_map = std::map<std::string, std::string>;

const std::string endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";

result<telemetry::options> read(variable_map set) {
  return telemetry::options_from(
    [set = std::move(set)](const std::string& name) {
      const auto found = set.find(name);
      return found == set.end() ? std::nullopt : std::optional(found->second);
    });
}

/// Reads the variables beside an endpoint.
telemetry::options with(variable_map set) {
  set.emplace(endpoint, "http://host:4318");
  return read(std::move(set)).value();
}

} // namespace

BOOST_AUTO_TEST_CASE(without_an_endpoint_nothing_is_on) {
  BOOST_TEST(!telemetry::is_on(read({}).value()));
  BOOST_TEST(!telemetry::is_on(read({{endpoint, "  "}}).value()));
}

BOOST_AUTO_TEST_CASE(a_common_endpoint_gets_the_paths) {
  const auto chosen = read({{endpoint, "https://host/otlp/"}}).value();
  BOOST_TEST(chosen.traces.url == "https://host/otlp/v1/traces");
  BOOST_TEST(chosen.metrics.url == "https://host/otlp/v1/metrics");
  BOOST_TEST(chosen.logs.url == "https://host/otlp/v1/logs");
}

BOOST_AUTO_TEST_CASE(a_common_endpoint_has_no_query) {
  for (const char* url : {"http://host/?key=s3cret", "http://host/#s3cret"}) {
    const auto outcome = read({{endpoint, url}});
    BOOST_TEST(code_of(outcome) == "invalid_argument");
    BOOST_TEST(reason_of(outcome).find("s3cret") == std::string::npos);
  }
  const std::string own = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  const auto chosen = with({{own, "http://host/x?key=1"}});
  BOOST_TEST(chosen.traces.url == "http://host/x?key=1");
}

BOOST_AUTO_TEST_CASE(certificates_are_those_of_the_system_at_last) {
  const std::string file = "OTEL_EXPORTER_OTLP_CERTIFICATE";
  BOOST_TEST(with({}).logs.certificates == "");
  BOOST_TEST(with({{"SSL_CERT_FILE", "/a"}}).logs.certificates == "/a");
  BOOST_TEST(with({{"SSL_CERT_FILE", "/a"}, {file, "/b"}}).logs.certificates
             == "/b");
}

BOOST_AUTO_TEST_CASE(an_endpoint_of_its_own_is_used_as_it_is) {
  const auto chosen
    = read({{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs/x"}}).value();
  BOOST_TEST(chosen.logs.url == "http://logs/x");
  BOOST_TEST(chosen.traces.url == "");
  BOOST_TEST(telemetry::is_on(chosen));
}

BOOST_AUTO_TEST_CASE(a_disabled_kit_is_off_whatever_else_is_set) {
  BOOST_TEST(!telemetry::is_on(with({{"OTEL_SDK_DISABLED", "TRUE"}})));
  BOOST_TEST(telemetry::is_on(with({{"OTEL_SDK_DISABLED", "false"}})));
}

BOOST_AUTO_TEST_CASE(an_exporter_of_none_switches_one_kind_off) {
  const auto chosen = with({{"OTEL_METRICS_EXPORTER", "none"}});
  BOOST_TEST(chosen.metrics.url == "");
  BOOST_TEST(chosen.traces.url == "http://host:4318/v1/traces");
}

BOOST_AUTO_TEST_CASE(headers_are_decoded_and_the_own_ones_count_more) {
  const auto chosen
    = with({{"OTEL_EXPORTER_OTLP_HEADERS", "api-key=a%20b, x=1"},
            {"OTEL_EXPORTER_OTLP_LOGS_HEADERS", "y=2"}});
  const std::vector<std::pair<std::string, std::string>> common{
    {"api-key", "a b"}, {"x", "1"}};
  BOOST_TEST((chosen.traces.headers == common));
  BOOST_TEST(chosen.logs.headers.size() == 1);
  BOOST_TEST(chosen.logs.headers.at(0).first == "y");
}

BOOST_AUTO_TEST_CASE(the_service_name_counts_more_than_the_attributes) {
  const auto chosen
    = with({{"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,zone=b%2Cc"},
            {"OTEL_SERVICE_NAME", "shop"}});
  const std::vector<std::pair<std::string, std::string>> expected{
    {"service.name", "shop"}, {"zone", "b,c"}};
  BOOST_TEST((chosen.resource == expected));
}

BOOST_AUTO_TEST_CASE(contents_are_off_unless_they_are_asked_for) {
  const std::string name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
  BOOST_TEST(!with({}).spans_have_contents);
  BOOST_TEST(!with({}).logs_have_contents);
  BOOST_TEST(with({{name, "true"}}).spans_have_contents);
  BOOST_TEST(with({{name, "true"}}).logs_have_contents);
  BOOST_TEST(!with({{name, "EVENT_ONLY"}}).spans_have_contents);
  BOOST_TEST(with({{name, "EVENT_ONLY"}}).logs_have_contents);
  BOOST_TEST(!with({{name, "NO_CONTENT"}}).logs_have_contents);
}

BOOST_AUTO_TEST_CASE(limits_and_times_are_read) {
  const auto chosen = with({{"OTEL_BSP_MAX_QUEUE_SIZE", "10"},
                            {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "20"},
                            {"OTEL_BSP_SCHEDULE_DELAY", "30"},
                            {"OTEL_METRIC_EXPORT_INTERVAL", "40"},
                            {"OTEL_EXPORTER_OTLP_TIMEOUT", "50"},
                            {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "60"}});
  BOOST_TEST(chosen.queue_max == 10);
  BOOST_TEST(chosen.batch_max == 10);
  BOOST_TEST(chosen.batch_delay.count() == 30);
  BOOST_TEST(chosen.metrics_period.count() == 40);
  BOOST_TEST(chosen.logs.timeout.count() == 50);
  BOOST_TEST(chosen.traces.timeout.count() == 60);
}

BOOST_AUTO_TEST_CASE(samplers_are_shares) {
  const std::string name = "OTEL_TRACES_SAMPLER";
  BOOST_TEST(with({}).sampled == 1);
  BOOST_TEST(with({{name, "always_off"}}).sampled == 0);
  BOOST_TEST(with({{name, "parentbased_traceidratio"},
                   {"OTEL_TRACES_SAMPLER_ARG", "0.25"}})
               .sampled
             == 0.25);
  BOOST_TEST(with({}).follows_parent);
  BOOST_TEST(with({{name, "parentbased_always_off"}}).follows_parent);
  BOOST_TEST(!with({{name, "always_on"}}).follows_parent);
}

BOOST_DATA_TEST_CASE(a_wrong_value_fails_and_names_the_variable,
                     data::make({"OTEL_EXPORTER_OTLP_PROTOCOL",
                                 "OTEL_EXPORTER_OTLP_TIMEOUT",
                                 "OTEL_EXPORTER_OTLP_HEADERS",
                                 "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                 "OTEL_RESOURCE_ATTRIBUTES",
                                 "OTEL_SDK_DISABLED",
                                 "OTEL_TRACES_EXPORTER",
                                 "OTEL_TRACES_SAMPLER",
                                 "OTEL_BSP_MAX_QUEUE_SIZE",
                                 "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_"
                                 "CONTENT"}),
                     name) {
  const auto outcome = read({{endpoint, "http://host"}, {name, "grpc"}});
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(reason_of(outcome).find(name) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(messages_do_not_show_the_values_of_headers) {
  const auto outcome = read({{endpoint, "http://host"},
                             {"OTEL_EXPORTER_OTLP_HEADERS", "key=%zzsecret"}});
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(reason_of(outcome).find("secret") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
