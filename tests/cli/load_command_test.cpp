// `troupe load`: what it prints, writes and exits with.

#include "troupe/core/json.hpp"

#include "program.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace troupe::testing {

namespace {

namespace data = boost::unit_test::data;

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ended load(std::vector<std::string> options) {
  options.insert(options.begin(), "load");
  return run_program(std::move(options));
}

const std::vector<std::vector<std::string>> unreadable = {
  {"--arrival", "often"},
  {"--ops", "session:fly"},
  {"--expect", "p99=5ms"},
  {"--appends", "5", "--duration", "3"},
  {"--hot", "--zipf", "1"},
  {"--store", "somewhere"},
};

const std::vector<std::vector<std::string>> not_runnable = {
  {"--callers", "0"},
  {"--arrival", "open"},
  {"--rate", "5"},
  {"--users", "100"},
  {"--store", "sqlite:../x"},
  {"--json", "/nowhere/at/all.json"},
};

} // namespace

BOOST_AUTO_TEST_SUITE(load_command)

BOOST_FIXTURE_TEST_CASE(the_verdict_is_the_last_line, scratch_folder) {
  const auto done = load({"--appends",
                          "500",
                          "--callers",
                          "4",
                          "--store",
                          "sqlite:" + path() + "/load.db",
                          "--json",
                          path() + "/load.json",
                          "--csv",
                          path() + "/load.csv"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(done.errors == "");
  BOOST_TEST(done.output.ends_with("\nverdict: 500 acknowledged, 0 lost, 0 "
                                   "doubled, order ok, totals ok\n"),
             done.output);
  const auto written = parse_json(content_of(path() + "/load.json")).value();
  BOOST_TEST(written.at("stored") == 500);
  BOOST_TEST(
    content_of(path() + "/load.csv").starts_with("at_seconds,stored,"));
}

BOOST_AUTO_TEST_CASE(an_expectation_that_does_not_hold_fails_it) {
  const auto done
    = load({"--appends", "100", "--expect", "max<1h", "--expect", "errors<1"});
  BOOST_TEST(done.code == 2);
  const auto broken
    = load({"--appends", "100", "--expect", "errors<1", "--expect", "rate<1"});
  BOOST_TEST(broken.code == 1);
  BOOST_TEST(broken.errors.starts_with("expected rate<1, but rate is "),
             broken.errors);
  BOOST_TEST(broken.output.find("0 lost") != std::string::npos);
}

BOOST_DATA_TEST_CASE(what_does_not_parse_is_a_usage_error,
                     data::xrange(unreadable.size()),
                     index) {
  const auto done = load(unreadable[index]);
  BOOST_TEST(done.code == 2);
  BOOST_TEST(done.errors.starts_with("error: invalid_argument: "), done.errors);
  BOOST_TEST(done.output == "");
}

BOOST_DATA_TEST_CASE(what_cannot_be_run_is_refused_before_it_begins,
                     data::xrange(not_runnable.size()),
                     index) {
  const auto done = load(not_runnable[index]);
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: "), done.errors);
  BOOST_TEST(done.output == "");
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
