// Comparisons of load tests: the input, the size of a change that counts, and
// the confidence.

#include "troupe/load/pages/comparison.hpp"

#include "troupe/load/report.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <ostream>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;
namespace tools = boost::test_tools;

namespace {

using runs = std::vector<measured_run>;

// -- reports ----

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

// -- runs ----

measured_run steady() {
  measured_run made;
  made.rate = 1'000;
  made.p50 = 1ms;
  made.p90 = 2ms;
  made.p99 = 3ms;
  made.p99_9 = 4ms;
  made.max = 5ms;
  made.mean = 1ms;
  made.stored = 10'000;
  made.holds = true;
  made.settings = {{"callers", 8}, {"seed", 1}};
  return made;
}

/// Returns five equal runs, changed by `change`.
runs five(const std::function<void(measured_run&)>& change = {}) {
  runs made(5, steady());
  if (change)
    std::ranges::for_each(made, change);
  return made;
}

runs with_rates(const std::vector<double>& rates) {
  runs made;
  for (const auto rate : rates)
    made.emplace_back(steady()).rate = rate;
  return made;
}

const runs rates_before = with_rates({1'000, 1'100, 1'050});
const runs rates_after = with_rates({900, 950, 850, 920});

figure_change figure(const comparison& made, const std::string& name) {
  return *std::ranges::find(made.figures, name, &figure_change::name);
}

std::string found(const comparison& made, const std::string& name) {
  return std::string(to_string(figure(made, name).found));
}

bool has(const std::vector<std::string>& lines, const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}

std::string last_line(const comparison& made) {
  const auto text = to_text(made);
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

double width(const comparison& made) {
  const auto interval = figure(made, "rate").interval.value();
  return interval.high - interval.low;
}

/// Rates that vary by a random factor, drawn by Box and Muller's method,
/// because the distributions of standard libraries differ.
class noise {
public:
  explicit noise(std::uint64_t seed) : random_(seed) {
    BOOST_TEST_MESSAGE("seed " << seed);
  }

  runs draw(std::size_t count, double rate, double spread) {
    std::vector<double> rates;
    while (rates.size() < count)
      rates.push_back(rate * std::exp(spread * normal()));
    return with_rates(rates);
  }

private:
  double uniform() {
    return (static_cast<double>(random_() >> 11U) + 0.5) * 0x1p-53;
  }

  double normal() {
    const auto length = std::sqrt(-2 * std::log(uniform()));
    return length * std::cos(2 * std::numbers::pi * uniform());
  }

  std::mt19937_64 random_;
};

} // namespace

BOOST_AUTO_TEST_SUITE(comparison)

// -- input ----

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

// -- confidence ----

// The expected values were computed in Python, with mpmath's incomplete beta
// function for the distribution and `findroot` for its quantile: 4.406 degrees
// of freedom.
BOOST_AUTO_TEST_CASE(the_interval_is_that_of_welch_on_logarithms) {
  const auto rate = figure(compare(rates_before, rates_after, {}), "rate");
  const auto near = tools::tolerance(1e-9);
  BOOST_TEST(rate.before == 1049.20574856, near);
  BOOST_TEST(rate.after == 904.259784969, near);
  BOOST_TEST(rate.change.value() == -0.138148274342, near);
  BOOST_TEST(rate.interval.value().low == -0.217652947174, near);
  BOOST_TEST(rate.interval.value().high == -0.0505640759595, near);
  const auto surer
    = figure(compare(rates_before, rates_after, {.confidence = 0.99}), "rate");
  BOOST_TEST(surer.interval.value().low == -0.26289309687, near);
  BOOST_TEST(surer.interval.value().high == 0.00770782889884, near);
}

BOOST_AUTO_TEST_CASE(swapped_sides_give_inverse_ratios) {
  const auto there = figure(compare(rates_before, rates_after, {}), "rate");
  const auto back = figure(compare(rates_after, rates_before, {}), "rate");
  const auto near = tools::tolerance(1e-12);
  BOOST_TEST((1 + *there.change) * (1 + *back.change) == 1, near);
  BOOST_TEST((1 + there.interval->low) * (1 + back.interval->high) == 1, near);
  BOOST_TEST((1 + there.interval->high) * (1 + back.interval->low) == 1, near);
  BOOST_TEST((there.found == finding::worse));
  BOOST_TEST((back.found == finding::better));
}

BOOST_AUTO_TEST_CASE(another_unit_changes_nothing) {
  const auto scaled = [](runs side) {
    for (auto& run : side)
      run.rate *= 1e-7;
    return side;
  };
  const auto plain = figure(compare(rates_before, rates_after, {}), "rate");
  const auto other
    = figure(compare(scaled(rates_before), scaled(rates_after), {}), "rate");
  const auto near = tools::tolerance(1e-9);
  BOOST_TEST(other.after == plain.after * 1e-7, near);
  BOOST_TEST(*other.change == *plain.change, near);
  BOOST_TEST(other.interval->low == plain.interval->low, near);
  BOOST_TEST(other.interval->high == plain.interval->high, near);
}

BOOST_AUTO_TEST_CASE(more_confidence_takes_a_wider_interval) {
  double before = 0;
  for (const auto confidence : {0.5, 0.8, 0.95, 0.99, 0.999}) {
    const auto now
      = width(compare(rates_before, rates_after, {.confidence = confidence}));
    BOOST_TEST(now > before, confidence);
    before = now;
  }
}

BOOST_AUTO_TEST_CASE(the_interval_covers_the_truth_as_often_as_it_says) {
  noise source(20'260'711);
  constexpr int draws = 2'000;
  int covered = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const auto before = source.draw(6, 1'000, 0.05);
    const auto after = source.draw(6, 1'200, 0.15);
    const auto interval = *figure(compare(before, after, {}), "rate").interval;
    covered += interval.low <= 0.2 && interval.high >= 0.2 ? 1 : 0;
  }
  BOOST_TEST(covered >= draws * 93 / 100);
  BOOST_TEST(covered <= draws * 97 / 100);
}

BOOST_AUTO_TEST_CASE(noise_is_hardly_ever_a_regression) {
  noise source(7);
  constexpr int draws = 1'000;
  int regressions = 0;
  int beyond_margin = 0;
  for (int draw = 0; draw < draws; ++draw) {
    const auto made
      = compare(source.draw(5, 1'000, 0.1), source.draw(5, 1'000, 0.1), {});
    regressions += made.regressed() ? 1 : 0;
    beyond_margin += *figure(made, "rate").change < -0.05 ? 1 : 0;
  }
  // The rate of one tail of the interval; without the interval many more would
  // be reported.
  BOOST_TEST(regressions < draws * 4 / 100);
  BOOST_TEST(beyond_margin > draws * 15 / 100);
}

BOOST_AUTO_TEST_CASE(a_drop_beyond_the_noise_is_found) {
  noise source(11);
  constexpr int draws = 500;
  int regressions = 0;
  for (int draw = 0; draw < draws; ++draw)
    regressions
      += compare(source.draw(5, 1'000, 0.03), source.draw(5, 850, 0.03), {})
             .regressed()
           ? 1
           : 0;
  BOOST_TEST(regressions > draws * 98 / 100);
}

BOOST_AUTO_TEST_CASE(runs_that_agree_have_an_interval_without_width) {
  // The logarithms of tenths do not add up exactly.
  const auto same = compare(with_rates({0.1, 0.1, 0.1}),
                            with_rates({0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}),
                            {});
  BOOST_TEST((figure(same, "rate").interval == change_interval{0, 0}));
  const auto slower = figure(
    compare(with_rates({0.3, 0.3, 0.3}), with_rates({0.1, 0.1, 0.1}), {}),
    "rate");
  BOOST_TEST(
    (slower.interval == change_interval{*slower.change, *slower.change}));
  BOOST_TEST((slower.found == finding::worse));
}

BOOST_AUTO_TEST_CASE(numbers_far_apart_stay_finite) {
  const auto made
    = compare(with_rates({1e-300, 1e18}), with_rates({1e18, 1e-300}), {});
  const auto interval = figure(made, "rate").interval.value();
  BOOST_TEST(std::isfinite(interval.low));
  BOOST_TEST(std::isfinite(interval.high));
  BOOST_TEST(check_json(to_json(made), "the comparison").has_value());
  BOOST_TEST(found(made, "rate") == "same");
}

BOOST_AUTO_TEST_CASE(one_run_each_has_no_interval_and_is_judged_by_margin) {
  const auto made = compare(with_rates({1'000}), with_rates({900}), {});
  BOOST_TEST(!figure(made, "rate").interval.has_value());
  BOOST_TEST(*figure(made, "rate").change == -0.1, tools::tolerance(1e-9));
  BOOST_TEST(last_line(made) == "comparison: regression: rate -10.0 %\n");
  BOOST_TEST(has(made.notes,
                 "few runs: 1 before, 1 after; run with --repeat 5 or more"));
  BOOST_TEST(has(made.notes,
                 "no intervals: a single run does not show how much runs vary, "
                 "so a change may be by chance"));
  // One run compared with several has no interval either.
  const auto single = with_rates({1'000});
  BOOST_TEST(!figure(compare(single, five(), {}), "rate").interval);
  BOOST_TEST(!figure(compare(five(), single, {}), "rate").interval);
}

// -- regressions ----

BOOST_AUTO_TEST_CASE(a_change_within_the_margin_is_the_same) {
  const auto slower = five([](measured_run& run) { run.rate = 960; });
  BOOST_TEST(found(compare(five(), slower, {}), "rate") == "same");
  BOOST_TEST(found(compare(slower, five(), {}), "rate") == "same");
  BOOST_TEST(found(compare(five(), slower, {.margin = 0.03}), "rate")
             == "worse");
  BOOST_TEST(found(compare(slower, five(), {.margin = 0.03}), "rate")
             == "better");
  const auto late = five([](measured_run& run) { run.p50 = 1040us; });
  BOOST_TEST(found(compare(five(), late, {}), "p50") == "same");
  BOOST_TEST(found(compare(five(), late, {.margin = 0.03}), "p50") == "worse");
  BOOST_TEST(found(compare(late, five(), {.margin = 0.03}), "p50") == "better");
}

BOOST_AUTO_TEST_CASE(a_change_that_may_be_none_is_the_same) {
  // 14 % lower; with this confidence the interval includes zero.
  const auto made = compare(rates_before, rates_after, {.confidence = 0.99});
  BOOST_TEST(found(made, "rate") == "same");
  BOOST_TEST(!made.regressed());
}

BOOST_AUTO_TEST_CASE(only_what_is_gated_makes_a_regression) {
  using time = fractional_nanoseconds measured_run::*;
  for (const auto& [name, which] : std::vector<std::pair<std::string, time>>{
         {"p90", &measured_run::p90},
         {"p99.9", &measured_run::p99_9},
         {"max", &measured_run::max},
         {"mean", &measured_run::mean}}) {
    const auto shown
      = compare(five(),
                five([which = which](measured_run& run) { run.*which *= 2; }),
                {});
    BOOST_TEST(found(shown, name) == "worse", name);
    BOOST_TEST(!shown.regressed(), name);
  }
  for (const auto which : {&measured_run::p50, &measured_run::p99})
    BOOST_TEST(
      compare(five(), five([which](measured_run& run) { run.*which *= 2; }), {})
        .regressed());
  BOOST_TEST(!compare(five(),
                      five([](measured_run& run) {
                        run.p50 /= 2;
                        run.rate *= 2;
                      }),
                      {})
                .regressed());
}

BOOST_AUTO_TEST_CASE(a_figure_that_is_zero_has_no_change) {
  auto idle = five();
  idle[3].rate = 0;
  idle[3].p99 = {};
  for (const auto& [before, after, side] :
       {std::tuple(five(), idle, "after"),
        std::tuple(idle, five(), "before"),
        std::tuple(idle, idle, "of each side")}) {
    const auto made = compare(before, after, {});
    BOOST_TEST(!figure(made, "rate").change.has_value());
    BOOST_TEST(!figure(made, "rate").interval.has_value());
    BOOST_TEST(found(made, "rate") == "unknown");
    BOOST_TEST(found(made, "p50") == "same");
    BOOST_TEST(has(made.notes,
                   std::string("no change can be computed, a run ") + side
                     + " has 0: rate, p99"));
    BOOST_TEST(to_text(made).find("nan") == std::string::npos);
    BOOST_TEST(check_json(to_json(made), "the comparison").has_value());
  }
}

BOOST_AUTO_TEST_CASE(runs_that_store_nothing_do_not_pass) {
  auto dead = five();
  dead[0] = {};
  dead[0].holds = true;
  dead[0].settings = steady().settings;
  BOOST_TEST(last_line(compare(five(), dead, {}))
             == "comparison: regression: nothing stored in 1 of 5 runs (0 of 5 "
                "before)\n");
  BOOST_TEST(compare(dead, five(), {}).improvements.size() == 1U);
  BOOST_TEST(!compare(dead, dead, {}).regressed());
}

BOOST_AUTO_TEST_CASE(a_verdict_that_does_not_hold_is_a_regression) {
  auto torn = five();
  torn[4].holds = false;
  BOOST_TEST(last_line(compare(five(), torn, {}))
             == "comparison: regression: verdict holds in 4 of 5 runs (5 of 5 "
                "before)\n");
  // The result does not depend on the runs before.
  BOOST_TEST(compare(torn, torn, {}).regressed());
  const auto mended = compare(torn, five(), {});
  BOOST_TEST(!mended.regressed());
  BOOST_TEST(mended.improvements.size() == 1U);
}

BOOST_AUTO_TEST_CASE(failures_count_by_their_share_of_all_appends) {
  const auto failing = [](std::uint64_t count) {
    return five([count](measured_run& run) {
      run.stored = 10'000 - count;
      run.failed = count;
    });
  };
  BOOST_TEST(!compare(five(), failing(490), {}).regressed());
  BOOST_TEST(last_line(compare(five(), failing(620), {}))
             == "comparison: regression: 6.2 % of appends failed (0.0 % "
                "before)\n");
  BOOST_TEST(!compare(failing(200), failing(620), {}).regressed());
  BOOST_TEST(compare(failing(620), five(), {}).improvements.size() == 1U);
  BOOST_TEST(compare(failing(620), five(), {}).before.failed_share == 0.062);
}

// -- notes ----

BOOST_AUTO_TEST_CASE(five_runs_that_agree_give_no_note) {
  const auto reseeded
    = five([](measured_run& run) { run.settings["seed"] = 2; });
  BOOST_TEST(compare(five(), reseeded, {}).notes.empty());
}

BOOST_AUTO_TEST_CASE(settings_that_differ_are_named_with_both_values) {
  const auto changed = five([](measured_run& run) {
    run.settings["callers"] = 64;
    run.settings["hot"] = true;
  });
  const auto made = compare(five(), changed, {});
  BOOST_TEST(made.notes.size() == 2U);
  BOOST_TEST(has(made.notes, "setting callers differs: 8 before, 64 after"));
  BOOST_TEST(
    has(made.notes, "setting hot differs: unknown before, true after"));
  BOOST_TEST(!made.regressed());
}

BOOST_AUTO_TEST_CASE(settings_that_differ_within_a_side_are_named) {
  auto mixed = five();
  mixed[2].settings["callers"] = 16;
  mixed[3].settings["hot"] = true;
  const auto notes = compare(mixed, mixed, {}).notes;
  BOOST_TEST(notes.size() == 4U);
  for (const auto* side : {"before", "after"}) {
    BOOST_TEST(has(notes,
                   std::string("the runs ") + side
                     + " differ in setting callers: 16 or 8"));
    BOOST_TEST(has(notes,
                   std::string("the runs ") + side
                     + " differ in setting hot: true or unknown"));
  }
}

BOOST_AUTO_TEST_CASE(machines_and_versions_that_differ_are_named) {
  const auto on = [](int cores, const std::string& version) {
    return five([&](measured_run& run) {
      run.machine = {{"cores", cores}, {"system", "Linux"}};
      run.versions = {{"troupe", version}};
    });
  };
  const auto notes = compare(on(2, "1"), on(4, "2"), {}).notes;
  BOOST_TEST(notes.size() == 2U);
  BOOST_TEST(has(notes, "machine cores differs: 2 before, 4 after"));
  BOOST_TEST(has(notes, "version troupe differs: \"1\" before, \"2\" after"));
  // Older reports lack the field.
  const auto older = compare(five(), on(4, "2"), {}).notes;
  BOOST_TEST(older.size() == 2U);
  BOOST_TEST(has(older, "machine recorded only in the runs after"));
  BOOST_TEST(has(compare(on(4, "2"), five(), {}).notes,
                 "version recorded only in the runs before"));
}

BOOST_AUTO_TEST_CASE(fewer_than_five_runs_are_few) {
  const auto few = [](std::size_t before, std::size_t after) {
    return compare(runs(before, steady()), runs(after, steady()), {}).notes;
  };
  BOOST_TEST(
    has(few(5, 4), "few runs: 5 before, 4 after; run with --repeat 5 or more"));
  BOOST_TEST(
    has(few(2, 9), "few runs: 2 before, 9 after; run with --repeat 5 or more"));
  BOOST_TEST(few(2, 2).size() == 1U);
  BOOST_TEST(few(5, 5).empty());
}

// -- text ----

BOOST_AUTO_TEST_CASE(the_last_line_says_what_it_comes_to) {
  BOOST_TEST(last_line(compare(five(), five(), {}))
             == "comparison: no regression beyond 5 %\n");
  BOOST_TEST(last_line(compare(five(), five(), {.margin = 0.075}))
             == "comparison: no regression beyond 7.5 %\n");
  auto slower = rates_after;
  for (auto& run : slower)
    run.p99 = 6ms;
  BOOST_TEST(last_line(compare(rates_before, slower, {}))
             == "comparison: regression: rate -13.8 % [-21.8 %, -5.1 %], "
                "p99 +100.0 % [+100.0 %, +100.0 %]\n");
}

BOOST_AUTO_TEST_CASE(the_line_before_it_tells_of_what_got_better) {
  BOOST_TEST(to_text(compare(rates_after, rates_before, {}))
               .ends_with("\nimprovement: rate +16.0 % [+5.3 %, +27.8 %]\n"
                          "comparison: no regression beyond 5 %\n"));
  BOOST_TEST(to_text(compare(five(), five(), {}))
               .ends_with("\nno difference to be seen beyond 5 %\n"
                          "comparison: no regression beyond 5 %\n"));
  const auto worse = to_text(compare(rates_before, rates_after, {}));
  BOOST_TEST(worse.find("no difference") == std::string::npos, worse);
  const auto mixed = five([](measured_run& run) {
    run.rate *= 2;
    run.p50 *= 2;
  });
  const auto both = to_text(compare(five(), mixed, {}));
  BOOST_TEST(both.find("\nimprovement: rate +100.0 %") != std::string::npos,
             both);
  BOOST_TEST(both.find("no difference") == std::string::npos, both);
}

BOOST_AUTO_TEST_CASE(the_table_is_aligned) {
  const auto text = to_text(compare(rates_before, rates_after, {}));
  BOOST_TEST(text.starts_with(
               "         before    after   change      95 % interval  verdict\n"
               "rate       1049      904  -13.8 %  [-21.8 %, -5.1 %]  worse\n"
               "p50     1.00 ms  1.00 ms   +0.0 %   [+0.0 %, +0.0 %]  same\n"),
             text);
  BOOST_TEST(text.find("\nholds    3 of 3   4 of 4        -                  "
                       "-  same\n")
               != std::string::npos,
             text);
}

BOOST_AUTO_TEST_CASE(json_holds_everything) {
  auto idle = rates_after;
  idle[0].p99 = {};
  const auto written = to_json(compare(rates_before, idle, {}));
  BOOST_TEST(written.at("regressed") == true);
  BOOST_TEST(written.at("margin") == 0.05);
  BOOST_TEST(written.at("confidence") == 0.95);
  BOOST_TEST(written.at("before").at("runs") == 3);
  BOOST_TEST(written.at("after").at("holding") == 4);
  BOOST_TEST(written.at("after").at("empty") == 0);
  BOOST_TEST(written.at("after").at("failedShare") == 0);
  BOOST_TEST(written.at("regressions").size() == 1U);
  BOOST_TEST(written.at("improvements").empty());
  BOOST_TEST(written.at("notes").size() == 2U);
  std::string names;
  for (const auto& each : written.at("figures"))
    names += each.at("name").get<std::string>() + ' ';
  BOOST_TEST(names == "rate p50 p90 p99 p99.9 max mean ");
  const auto& rate = written.at("figures")[0];
  BOOST_TEST(rate.at("gated") == true);
  BOOST_TEST(rate.at("finding") == "worse");
  BOOST_TEST(rate.at("change").get<double>() == -0.138148274342,
             tools::tolerance(1e-9));
  BOOST_TEST(rate.at("interval").size() == 2U);
  BOOST_TEST(written.at("figures")[3].at("change").is_null());
  BOOST_TEST(written.at("figures")[3].at("interval").is_null());
}

BOOST_AUTO_TEST_SUITE_END()
