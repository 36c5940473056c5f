// Small load tests from start to end: their reports and their endings.

#include "troupe/load/report.hpp"

#include "../outcome.hpp"
#include "../runtime/staged_store.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(load_tests)

namespace {

settings few(std::uint64_t appends = 2'000) {
  settings chosen;
  chosen.callers = 8;
  chosen.appends = appends;
  return chosen;
}

outcome perform(const settings& chosen) {
  return run_load_test(chosen, {}, {}).value();
}

const std::vector<std::string> mixes = {"session:set",
                                        "session:append",
                                        "session:cas",
                                        "session+user+app:cas",
                                        "user:append",
                                        "app:set,user:add=3,session:cas"};

} // namespace

BOOST_AUTO_TEST_CASE(a_closed_test_makes_the_appends_that_were_asked_for) {
  const auto made = perform(few());
  BOOST_TEST(made.stored == 2'000U);
  BOOST_TEST(made.sent == 2'000U);
  BOOST_TEST(made.failed.empty());
  BOOST_TEST_REQUIRE(made.found.has_value());
  BOOST_TEST(to_string(*made.found)
             == "verdict: 2000 acknowledged, 0 lost, 0 doubled, order ok, "
                "totals ok");
  BOOST_TEST(made.response.count() == 2'000U);
  std::uint64_t by_entry = 0;
  for (const auto& each : made.by_entry)
    by_entry += each.count();
  BOOST_TEST(by_entry == 2'000U);
}

BOOST_DATA_TEST_CASE(every_kind_of_append_is_checked, data::make(mixes), mix) {
  auto chosen = few(600);
  chosen.mix = read_mix(mix).value();
  const auto made = perform(chosen);
  BOOST_TEST_REQUIRE(made.found.has_value());
  BOOST_TEST(made.found->holds(), to_text(made));
  BOOST_TEST(
    made.stored
      + (made.failed.contains("conflict") ? made.failed.at("conflict") : 0)
    == 600U);
}

BOOST_AUTO_TEST_CASE(an_open_test_offers_what_the_rate_says) {
  auto chosen = few(500);
  chosen.arrival = arrival::open;
  chosen.rate = 5'000;
  const auto made = perform(chosen);
  BOOST_TEST(made.stored == 500U);
  // The rate is an upper bound; the machine may be slower.
  BOOST_TEST(made.elapsed >= 99ms);
  BOOST_TEST(made.found->holds(), to_text(made));
}

BOOST_AUTO_TEST_CASE(readers_read_beside_the_writers) {
  auto chosen = few();
  chosen.readers = 2;
  const auto made = perform(chosen);
  BOOST_TEST(made.reads > 0U);
  BOOST_TEST(made.found->holds());
}

BOOST_AUTO_TEST_CASE(a_test_that_is_stopped_reports_what_ran) {
  auto chosen = few();
  chosen.appends = {};
  chosen.duration = 1h;
  std::stop_source stop;
  std::atomic<int> seconds = 0;
  const auto made = run_load_test(
                      chosen,
                      [&](const progress& now) {
                        ++seconds;
                        if (now.stored > 0)
                          stop.request_stop();
                      },
                      stop.get_token())
                      .value();
  BOOST_TEST(made.interrupted);
  BOOST_TEST(made.stored > 0U);
  BOOST_TEST(seconds > 0);
  BOOST_TEST(made.seconds.size() >= 1U);
  BOOST_TEST(made.found->holds());
}

// The sums agree even for a very short test.
BOOST_AUTO_TEST_CASE(the_seconds_add_up_to_the_whole) {
  for (int round = 0; round < 20; ++round) {
    const auto made = perform(few(50));
    std::uint64_t stored = 0;
    std::uint64_t offered = 0;
    for (const auto& each : made.seconds) {
      stored += each.stored;
      offered += each.offered;
    }
    BOOST_TEST(stored == 50U);
    BOOST_TEST(offered == 50U);
  }
}

BOOST_AUTO_TEST_CASE(every_event_is_in_a_batch) {
  const auto made = perform(few());
  std::uint64_t events = 0;
  for (const auto& [size, count] : made.batches)
    events += size * count;
  BOOST_TEST(events == 2'000U);
}

BOOST_AUTO_TEST_CASE(what_is_stored_is_looked_at_by_another_runtime) {
  const temporary_folder folder;
  auto chosen = few(300);
  chosen.store = "sqlite:" + (folder.path() / "load.db").string();
  const auto made = perform(chosen);
  BOOST_TEST(made.found->holds(), to_text(made));
  BOOST_TEST(made.found->acknowledged == 300U);
}

BOOST_AUTO_TEST_CASE(a_store_that_fails_half_way_ends_in_a_report) {
  const staged_place place;
  std::atomic<int> commits = 0;
  place.script->each_commit([&commits] {
    return ++commits > 100 ? store_script::step::fail
                           : store_script::step::work;
  });
  auto chosen = few(2'000);
  chosen.store = place.options().store;
  const auto made = perform(chosen);
  BOOST_TEST(made.sent == 2'000U);
  BOOST_TEST(made.stored > 0U);
  BOOST_TEST(made.failed.at("store_failed") == 2'000U - made.stored);
  // All acknowledged events are stored, and only those are counted.
  BOOST_TEST_REQUIRE(made.found.has_value());
  BOOST_TEST(made.found->holds(), to_text(made));
  BOOST_TEST(made.found->acknowledged == made.stored);
}

BOOST_AUTO_TEST_CASE(a_store_that_cannot_be_read_any_more_ends_in_a_report) {
  const staged_place place;
  std::atomic<int> commits = 0;
  place.script->each_commit([&commits] {
    return ++commits > 100 ? store_script::step::vanish
                           : store_script::step::work;
  });
  auto chosen = few(2'000);
  chosen.store = place.options().store;
  const auto made = perform(chosen);
  BOOST_TEST(!made.found.has_value());
  BOOST_TEST(made.unchecked.starts_with("store_failed: "), made.unchecked);
  BOOST_TEST(
    to_text(made).find("\nverdict: not checked, the store could not be "
                       "read: store_failed")
    != std::string::npos);
  BOOST_TEST(to_json(made).at("verdict").at("checked") == false);
}

BOOST_AUTO_TEST_CASE(what_was_not_stored_is_judged_by_nobody) {
  auto chosen = few(20);
  const staged_place place;
  place.script->each_commit([commits = 0]() mutable {
    // Only the commits of the sessions succeed.
    return ++commits > 64 ? store_script::step::fail : store_script::step::work;
  });
  chosen.store = place.options().store;
  const auto made = perform(chosen);
  if (made.stored == 0) {
    BOOST_TEST(!made.holds());
    BOOST_TEST(
      !judge_expectations(made, {read_expectation("p99<5s").value()})[0].holds);
  }
}

BOOST_AUTO_TEST_CASE(open_arrival_ends_with_its_duration) {
  settings chosen;
  chosen.arrival = arrival::open;
  chosen.rate = 5'000'000; // Too fast for one thread.
  chosen.callers = 8;
  chosen.duration = 100ms;
  const auto made = perform(chosen);
  BOOST_TEST(made.sent < 500'000U);
  BOOST_TEST(made.stored > 0U);
  BOOST_TEST((made.lateness.max() > 0ns));
  BOOST_TEST(made.found->holds(), to_text(made));
}

BOOST_AUTO_TEST_CASE(other_seeds_are_other_appends) {
  const auto streams = [](std::uint64_t seed) {
    settings chosen;
    chosen.seed = seed;
    const workload plan(chosen, "x");
    std::set<std::string> all;
    for (std::uint32_t caller = 0; caller < 64; ++caller) {
      std::string stream;
      for (std::uint64_t number = 0; number < 20; ++number)
        stream += std::to_string(plan.plan(caller, number).session) + " ";
      all.insert(stream);
    }
    return all;
  };
  const auto first = streams(1);
  for (const auto& stream : streams(42))
    BOOST_TEST(!first.contains(stream));
}

BOOST_AUTO_TEST_CASE(absurd_amounts_are_refused) {
  const auto refused = [](const std::function<void(settings&)>& change) {
    settings chosen;
    change(chosen);
    return code_of(check_settings(chosen)) == "invalid_argument";
  };
  BOOST_TEST(refused([](settings& of) { of.callers = 10'000'000'000; }));
  BOOST_TEST(refused([](settings& of) { of.readers = SIZE_MAX; }));
  BOOST_TEST(refused([](settings& of) { of.sessions = SIZE_MAX; }));
  BOOST_TEST(refused([](settings& of) { of.payload = 1'000'000'000'000; }));
  BOOST_TEST(refused([](settings& of) { of.appends = UINT64_MAX; }));
  for (const double rate : {1e300, 1e8, 0.01})
    BOOST_TEST(refused([rate](settings& of) {
      of.arrival = arrival::open;
      of.rate = rate;
    }));
  BOOST_TEST(refused([](settings& of) {
    of.arrival = arrival::open;
    of.rate = 10;
    of.mix = read_mix("session:cas").value();
  }));
  BOOST_TEST(refused([](settings& of) { of.mix = {{.session = false}}; }));
  for (const double weight : {0.0, -1.0, std::nan("")})
    BOOST_TEST(
      refused([weight](settings& of) { of.mix = {{.weight = weight}}; }));
  BOOST_TEST(!refused([](settings&) {}));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_run_is_refused) {
  settings chosen;
  chosen.callers = 0;
  BOOST_TEST(code_of(run_load_test(chosen, {}, {})) == "invalid_argument");
  chosen = few();
  chosen.store = "sqlite:../x";
  BOOST_TEST(code_of(run_load_test(chosen, {}, {})) == "invalid_argument");
}

// -- reports ----

BOOST_AUTO_TEST_CASE(the_last_line_of_the_report_is_the_verdict) {
  const auto text = to_text(perform(few(100)));
  BOOST_TEST(text.ends_with("\nverdict: 100 acknowledged, 0 lost, 0 doubled, "
                            "order ok, totals ok\n"),
             text);
}

BOOST_AUTO_TEST_CASE(json_holds_everything) {
  const auto written = to_json(perform(few(100)));
  BOOST_TEST(written.at("stored") == 100);
  BOOST_TEST(written.at("verdict").at("holds") == true);
  BOOST_TEST(written.at("settings").at("callers") == 8);
  BOOST_TEST(histogram_from_json(written.at("response")).value().count()
             == 100U);
  BOOST_TEST(
    read_mix(written.at("settings").at("ops").get<std::string>()).has_value());
}

BOOST_AUTO_TEST_CASE(expectations_are_read_and_held_against_the_figures) {
  outcome made;
  for (int count = 1; count <= 100; ++count)
    made.response.record(std::chrono::milliseconds(count));
  made.stored = 100;
  made.elapsed = 1s;
  made.failed["busy"] = 3;
  const auto judged = [&made](const std::string& text) {
    return judge_expectations(made, {read_expectation(text).value()}).at(0);
  };
  for (const auto* holds : {"p50<51ms",
                            "p99<0.1s",
                            "max<101ms",
                            "rate>99",
                            "rate<101",
                            "errors<4",
                            "mean>50ms",
                            "p50>49000us"})
    BOOST_TEST(judged(holds).holds, holds);
  for (const auto* fails :
       {"p50<50ms", "p99.99<100ms", "rate>100", "errors<3", "max<100000000ns"})
    BOOST_TEST(!judged(fails).holds, fails);
  BOOST_TEST(judged("rate>1000").finding
             == "expected rate>1000, but rate is 100");
  // The last line and the JSON tell it.
  made.expected = {judged("rate>1000"), judged("rate>99")};
  BOOST_TEST(
    to_text(made).ends_with("; FAILED: expected rate>1000, but rate is 100\n"));
  BOOST_TEST(to_json(made).at("expectations")
             == json::parse(R"([{"text": "rate>1000", "holds": false,
               "finding": "expected rate>1000, but rate is 100"},
               {"text": "rate>99", "holds": true}])"));
  for (const auto* bad : {"",
                          "p99",
                          "p99<",
                          "p99<5",
                          "p98<5ms",
                          "rate>5ms",
                          "rate>-1",
                          "p99<5min",
                          "p99=5ms",
                          "errors<x"})
    BOOST_TEST(code_of(read_expectation(bad)) == "invalid_argument", bad);
}

BOOST_AUTO_TEST_CASE(expectations_that_can_never_hold_are_refused) {
  settings chosen;
  chosen.arrival = arrival::open;
  chosen.rate = 1'000;
  const auto check = [&chosen](const std::vector<std::string>& texts) {
    std::vector<expectation> expected;
    for (const auto& text : texts)
      expected.push_back(read_expectation(text).value());
    return code_of(check_expectations(chosen, expected));
  };
  BOOST_TEST(check({"p99<5ms", "p99>1ms", "rate>999", "errors<1"}) == "ok");
  BOOST_TEST(check({"p99<0ms"}) == "invalid_argument");
  BOOST_TEST(check({"errors<0"}) == "invalid_argument");
  BOOST_TEST(check({"p99<1ms", "p99>5ms"}) == "invalid_argument");
  BOOST_TEST(check({"rate>1000"}) == "invalid_argument");
  chosen.arrival = arrival::closed;
  BOOST_TEST(check({"rate>1000"}) == "ok");
}

BOOST_AUTO_TEST_CASE(a_row_of_csv_has_a_value_for_each_column) {
  const auto text = to_csv(perform(few(100)));
  const auto head = text.substr(0, text.find('\n'));
  const auto row = text.substr(head.size() + 1);
  BOOST_TEST(std::ranges::count(head, ',') == 8);
  BOOST_TEST(std::ranges::count(row.substr(0, row.find('\n')), ',') == 8);
}

BOOST_AUTO_TEST_CASE(times_are_told_in_utc) {
  BOOST_TEST(
    to_rfc3339(timestamp(std::chrono::microseconds(1'700'000'000'500'000)))
    == "2023-11-14T22:13:20Z");
}

BOOST_AUTO_TEST_SUITE_END()
