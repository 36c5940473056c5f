// Comparisons of load tests: the size of a change that counts, notes, and the
// text.

#include "troupe/load/pages/comparison.hpp"

#include "../outcome.hpp"
#include "compared_runs.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
using namespace std::chrono_literals;
namespace tools = boost::test_tools;

BOOST_AUTO_TEST_SUITE(comparison)

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
