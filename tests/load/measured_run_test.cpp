// Reports as the input of a comparison: the figures that are read, and reports
// that are refused.

#include "troupe/load/pages/measured_run.hpp"

#include "troupe/load/report.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(measured_runs)

namespace {

json report() {
  outcome made;
  for (int count = 1; count <= 1'000; ++count)
    made.response.record(std::chrono::microseconds(count));
  made.stored = 1'000;
  made.elapsed = 2s;
  made.failed = {{"busy", 3}, {"conflict", 4}};
  made.found.emplace();
  made.seconds.resize(2);
  return to_json(made);
}

struct bad_report {
  std::string reason;
  std::function<void(json&)> change;

  friend std::ostream& operator<<(std::ostream& out, const bad_report& row) {
    return out << row.reason;
  }
};

const std::vector<bad_report> bad_reports = {
  {"this is not a report of a load test",
   [](json& made) { made.erase("settings"); }},
  {"this is not a report of a load test",
   [](json& made) { made["kind"] = "sweep"; }},
  {"'settings' is 7, not an object", [](json& made) { made["settings"] = 7; }},
  {"'appendsPerSecond' is missing",
   [](json& made) { made.erase("appendsPerSecond"); }},
  {"'appendsPerSecond' is -1, not a number from 0 to 1e+18",
   [](json& made) { made["appendsPerSecond"] = -1; }},
  // nlohmann writes `null` for infinity and for NaN.
  {"'appendsPerSecond' is null, not a number from 0 to 1e+18",
   [](json& made) { made["appendsPerSecond"] = std::nan(""); }},
  {"'response.p50' is missing",
   [](json& made) { made["response"] = json::array(); }},
  {"'response.p99_9' is missing",
   [](json& made) { made["response"].erase("p99_9"); }},
  {"'response.mean' is 1e+300, not a number from 0 to 1e+18",
   [](json& made) { made["response"]["mean"] = 1e300; }},
  {"'response.max' is \"long\", not a number from 0 to 1e+18",
   [](json& made) { made["response"]["max"] = "long"; }},
  {"'response.p90' is array, not a number from 0 to 1e+18",
   [](json& made) {
     made["response"]["p90"] = {1, 2};
   }},
  {"'stored' is 1.5, not a whole number from 0 to 1e+18",
   [](json& made) { made["stored"] = 1.5; }},
  {"'failed.busy' is -3, not a whole number from 0 to 1e+18",
   [](json& made) { made["failed"]["busy"] = -3; }},
  {"'verdict.checked' is missing", [](json& made) { made.erase("verdict"); }},
  {"'verdict.holds' is missing",
   [](json& made) { made["verdict"].erase("holds"); }},
  {"'verdict.holds' is 1, not true or false",
   [](json& made) { made["verdict"]["holds"] = 1; }},
  {"'machine' is \"mine\", not an object",
   [](json& made) { made["machine"] = "mine"; }},
};

} // namespace

BOOST_AUTO_TEST_CASE(a_report_reads_as_what_was_measured) {
  auto written = report();
  written["machine"] = {{"cores", 2}};
  written.erase("versions");
  const auto read = read_runs(written.dump()).value();
  BOOST_TEST_REQUIRE(read.size() == 1U);
  const auto& run = read[0];
  BOOST_TEST(run.rate == 500);
  BOOST_TEST(run.p50.count() == written["response"]["p50"].get<double>());
  BOOST_TEST(run.p90.count() == written["response"]["p90"].get<double>());
  BOOST_TEST(run.p99.count() == written["response"]["p99"].get<double>());
  BOOST_TEST(run.p99_9.count() == written["response"]["p99_9"].get<double>());
  BOOST_TEST((run.max == 1ms));
  BOOST_TEST(run.mean.count() == written["response"]["mean"].get<double>());
  BOOST_TEST(run.stored == 1'000U);
  BOOST_TEST(run.failed == 7U);
  BOOST_TEST(run.holds);
  BOOST_TEST(run.settings.at("callers") == 64);
  BOOST_TEST(run.machine.at("cores") == 2);
  BOOST_TEST(run.versions.is_null());
}

BOOST_AUTO_TEST_CASE(a_run_without_a_verdict_does_not_hold) {
  outcome unchecked;
  unchecked.unchecked = "the store is gone";
  BOOST_TEST(!read_runs(to_json(unchecked).dump()).value()[0].holds);
}

BOOST_AUTO_TEST_CASE(a_report_from_before_there_were_kinds_is_read) {
  auto older = report();
  for (const auto* field : {"kind", "machine", "versions"})
    older.erase(field);
  BOOST_TEST(read_runs(older.dump()).has_value());
}

BOOST_AUTO_TEST_CASE(there_is_a_run_on_each_line_that_is_not_blank) {
  const auto line = report().dump();
  const auto read = read_runs("\n" + line + "\r\n \t\n" + line + "\n\n" + line);
  BOOST_TEST(read.value().size() == 3U);
}

BOOST_AUTO_TEST_CASE(a_report_may_be_laid_out_over_several_lines) {
  for (const int indentation : {0, 1, 4})
    BOOST_TEST(
      read_runs("\n" + report().dump(indentation) + "\n").value().size() == 1U,
      indentation);
  const auto laid_out = report().dump(2) + '\n';
  BOOST_TEST(read_runs(laid_out + laid_out).value().size() == 2U);
}

BOOST_DATA_TEST_CASE(what_is_no_report_is_refused_with_its_line,
                     data::make(bad_reports),
                     bad) {
  auto changed = report();
  bad.change(changed);
  const auto failed = read_runs(report().dump() + "\n\n" + changed.dump());
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed) == "line 3: " + bad.reason);
}

BOOST_AUTO_TEST_CASE(what_is_no_json_is_refused_with_its_place) {
  const auto line = report().dump() + '\n';
  BOOST_TEST(reason_of(read_runs(line + "{\"settings\": tru}\n" + line))
             == "line 2: malformed JSON at line 2, byte 17 of it");
  BOOST_TEST(reason_of(read_runs(line + line + line.substr(0, 9)))
             == "line 3: malformed JSON: it ends too early");
  BOOST_TEST(reason_of(read_runs(line + "{\"a\": 1, \"a\": 2}"))
             == "line 2: the key \"a\" comes twice in one object");
  BOOST_TEST(reason_of(read_runs("\n{\n \"a\": 1,\n \"b\" 2\n}\n"))
             == "line 2: malformed JSON at line 4, byte 6 of it");
  BOOST_TEST(reason_of(read_runs("hello\n" + line)).starts_with("line 1: "));
  BOOST_TEST(reason_of(read_runs("\n[]"))
             == "line 2: this is not a report of a load test");
}

BOOST_AUTO_TEST_CASE(a_text_without_a_run_is_refused) {
  for (const auto* text : {"", "\n \r\n\t\n"})
    BOOST_TEST(reason_of(read_runs(text))
               == "the text has no report of a load test");
}

BOOST_AUTO_TEST_SUITE_END()
