// `troupe load`: its output, files and exit codes.

#include "troupe/core/json.hpp"

#include "program.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace troupe::testing {

BOOST_AUTO_TEST_SUITE(load_command)

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
  {"--json", "/nowhere/at/all.json"},
  {"--expect", "p99<0ms"},
  {"--expect", "p99<1ms", "--expect", "p99>2ms"},
  {"--arrival", "open", "--rate", "5", "--expect", "rate>5"},
  {"--repeat", "2", "--html", "x.html"},
  {"--repeat", "0"},
  {"--callers", "10000000000"},
  {"--duration", "1e300"},
  {"--payload", "5000000"},
  {"sweep", "--vary", "callers=0"},
  {"sweep", "--vary", "callers=1", "--csv", "x.csv"},
  {"compare"},
  {"compare", "/nowhere/a.json", "/nowhere/b.json"},
  {"compare", "/etc/passwd", "/etc/passwd"},
  {"compare", "/tmp", "/tmp"},
  {"compare", "a", "b", "--margin", "-1"},
};

} // namespace

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
    content_of(path() + "/load.csv").starts_with("at_seconds,offered,"));
}

BOOST_AUTO_TEST_CASE(an_expectation_that_does_not_hold_fails_it) {
  const auto done
    = load({"--appends", "100", "--expect", "max<1h", "--expect", "errors<1"});
  BOOST_TEST(done.code == 2);
  const auto broken
    = load({"--appends", "100", "--expect", "errors<1", "--expect", "rate<1"});
  BOOST_TEST(broken.code == 1);
  BOOST_TEST(broken.output.find("0 lost, 0 doubled, order ok, totals ok; "
                                "FAILED: expected rate<1, but rate is ")
               != std::string::npos,
             broken.output);
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
  BOOST_TEST(done.code == 2);
  BOOST_TEST(done.errors.starts_with("error: "), done.errors);
  BOOST_TEST(std::ranges::count(done.errors, '\n') == 1, done.errors);
  BOOST_TEST(done.output == "");
}

BOOST_AUTO_TEST_CASE(a_number_that_does_not_parse_is_told_in_short) {
  for (const auto& [option, text, least] : {std::tuple("--callers", "two", 0),
                                            std::tuple("--rate", "-1", 0),
                                            std::tuple("--zipf", "nan", 0),
                                            std::tuple("--appends", "0", 1),
                                            std::tuple("--repeat", "0", 1)})
    BOOST_TEST(load({option, text}).errors
               == fmt::format("error: invalid_argument: {}: '{}' is not a "
                              "number of {} or more (see troupe load "
                              "--help)\n",
                              option,
                              text,
                              least));
  BOOST_TEST(load({"sweep", "--callers", "1,2"}).errors
             == "error: invalid_argument: --callers: '1,2' is not a number of "
                "0 or more; for several values see --vary (see "
                "troupe load sweep --help)\n");
}

// The address parses and breaks a rule of stores, so the exit code is 1.
BOOST_AUTO_TEST_CASE(a_path_that_no_store_may_have_is_refused) {
  const auto done = load({"--store", "sqlite:../x"});
  BOOST_TEST(done.code == 1);
  BOOST_TEST(done.errors.starts_with("error: invalid_argument: "), done.errors);
}

BOOST_FIXTURE_TEST_CASE(repeated_tests_can_be_compared, scratch_folder) {
  for (const std::string name : {"a", "b"}) {
    const auto done = load({"--appends",
                            "200",
                            "--callers",
                            "2",
                            "--repeat",
                            "3",
                            "--json",
                            path() + "/" + name});
    BOOST_TEST(done.code == 0);
    BOOST_TEST(done.output.find("\nappends/s ") != std::string::npos);
    BOOST_TEST(done.output.ends_with("verdict: 600 acknowledged, 0 lost, 0 "
                                     "doubled, order ok, totals ok\n"),
               done.output);
    const auto lines = content_of(path() + "/" + name);
    BOOST_TEST(std::ranges::count(lines, '\n') == 3);
  }
  const auto same
    = load({"compare", path() + "/a", path() + "/b", "--margin", "1000000"});
  BOOST_TEST(same.code == 0);
  BOOST_TEST(same.output.find("comparison: no regression") != std::string::npos,
             same.output);
}

// The rates are written by the test: on a busy machine measured ones differ too
// much for a verdict.
BOOST_FIXTURE_TEST_CASE(a_regression_is_found, scratch_folder) {
  const auto done
    = load({"--appends", "200", "--repeat", "3", "--json", path() + "/a"});
  BOOST_TEST(done.code == 0);
  std::istringstream lines(content_of(path() + "/a"));
  std::ofstream better(path() + "/better");
  std::ofstream worse(path() + "/worse");
  double rate = 100'000;
  for (std::string line; std::getline(lines, line); rate += 1'000) {
    auto run = parse_json(line).value();
    run["appendsPerSecond"] = rate;
    better << run.dump() << '\n';
    run["appendsPerSecond"] = rate / 10;
    worse << run.dump() << '\n';
  }
  better.close();
  worse.close();
  const auto found = load({"compare", path() + "/better", path() + "/worse"});
  BOOST_TEST(found.code == 1);
  BOOST_TEST(found.output.find("\ncomparison: regression: rate -90")
               != std::string::npos,
             found.output);
}

BOOST_FIXTURE_TEST_CASE(a_page_and_a_distribution_are_written, scratch_folder) {
  const auto done = load({"--appends",
                          "100",
                          "--html",
                          path() + "/x.html",
                          "--hgrm",
                          path() + "/x.hgrm"});
  BOOST_TEST(done.code == 0);
  BOOST_TEST(content_of(path() + "/x.html").find("\"kind\":\"load\"")
             != std::string::npos);
  BOOST_TEST(content_of(path() + "/x.hgrm").find("#[Mean ")
             != std::string::npos);
}

// A report file that cannot be written does not affect the printed report.
BOOST_FIXTURE_TEST_CASE(the_report_comes_before_its_files, scratch_folder) {
  for (const auto* option : {"--json", "--csv", "--hgrm", "--html"}) {
    const auto done = load({"--appends", "50", option, "/dev/full"});
    BOOST_TEST(done.code == 1);
    BOOST_TEST(done.errors.starts_with("error: store_failed: write /dev/full"),
               done.errors);
    BOOST_TEST(done.output.find("\nverdict: 50 acknowledged")
               != std::string::npos);
  }
}

BOOST_FIXTURE_TEST_CASE(an_old_report_stays_until_there_is_a_new_one,
                        scratch_folder) {
  const auto old = write("old.json", "old");
  BOOST_TEST(load({"--store", "sqlite:/nowhere/x.db", "--json", old}).code
             == 1);
  BOOST_TEST(content_of(old) == "old");
  BOOST_TEST(load({"--appends", "10", "--json", old}).code == 0);
  BOOST_TEST(content_of(old).starts_with("{"));
  // The folder has no other file.
  const std::filesystem::directory_iterator all(path());
  BOOST_TEST(std::distance(begin(all), end(all)) == 1);
}

BOOST_FIXTURE_TEST_CASE(a_file_is_written_by_one_alone, scratch_folder) {
  for (const auto& words :
       {std::vector<std::string>{
          "--json", path() + "/x", "--csv", path() + "/./x"},
        {"--store", "sqlite:" + path() + "/x", "--json", path() + "/x"}}) {
    const auto done = load(words);
    BOOST_TEST(done.code == 2);
    BOOST_TEST(done.errors.find("is written to twice") != std::string::npos);
  }
}

BOOST_FIXTURE_TEST_CASE(a_path_that_is_no_utf8_is_reported, scratch_folder) {
  const auto done = load({"--appends",
                          "10",
                          "--store",
                          "sqlite:" + path() + "/\xff.db",
                          "--json",
                          path() + "/x.json"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(parse_json(content_of(path() + "/x.json")).has_value());
}

BOOST_FIXTURE_TEST_CASE(a_sweep_prints_a_row_for_each_value, scratch_folder) {
  const auto done = load({"sweep",
                          "--vary",
                          "callers=1,4",
                          "--appends",
                          "100",
                          "--json",
                          path() + "/x.json",
                          "--html",
                          path() + "/x.html"});
  BOOST_TEST(done.code == 0, done.errors);
  BOOST_TEST(std::ranges::count(done.output, '\n') == 3, done.output);
  const auto written = parse_json(content_of(path() + "/x.json")).value();
  BOOST_TEST(written.at("rows").size() == 2U);
  BOOST_TEST(content_of(path() + "/x.html").find("\"kind\":\"sweep\"")
             != std::string::npos);
}

// At Ctrl-C all finished appends are reported, however long the check takes.
BOOST_AUTO_TEST_CASE(an_interrupt_ends_with_a_report) {
  program running({"load", "--duration", "600", "--callers", "4"},
                  program::screen::terminal);
  BOOST_REQUIRE(running.read_until(" in flight, "));
  running.send(SIGINT);
  const auto end = running.wait();
  BOOST_TEST(end.code == 130);
  BOOST_TEST(end.output.find("(ended early)") != std::string::npos, end.output);
  BOOST_TEST(end.output.find("\nverdict: ") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

} // namespace troupe::testing
