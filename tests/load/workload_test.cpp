// The workload of a load test: valid settings, mixes, and appends that a seed
// repeats.

#include "troupe/load/workload.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(workloads)

namespace {

struct refused_setting {
  std::string reason;
  std::function<void(settings&)> change;

  friend std::ostream& operator<<(std::ostream& out,
                                  const refused_setting& row) {
    return out << row.reason;
  }
};

const std::vector<refused_setting> refused_settings = {
  {"at least one", [](settings& chosen) { chosen.callers = 0; }},
  {"there are fewer users", [](settings& chosen) { chosen.apps = 9; }},
  {"there are fewer sessions", [](settings& chosen) { chosen.sessions = 1; }},
  {"mix is empty", [](settings& chosen) { chosen.mix.clear(); }},
  {"duration", [](settings& chosen) { chosen.duration = {}; }},
  {"appends is 0", [](settings& chosen) { chosen.appends = 0; }},
  {"open arrival needs a rate",
   [](settings& chosen) { chosen.arrival = arrival::open; }},
  {"a rate needs open", [](settings& chosen) { chosen.rate = 5; }},
  {"Zipf", [](settings& chosen) { chosen.zipf = -1; }},
  {"hot",
   [](settings& chosen) {
     chosen.hot = true;
     chosen.zipf = 1;
   }},
};

const std::vector<std::string> bad_mixes = {"",
                                            "add",
                                            "session:",
                                            "session:fly",
                                            "moon:add",
                                            "session:add=0",
                                            "session:add=x",
                                            "session:add=1,",
                                            "session+:add",
                                            "session:add=inf"};

std::map<std::uint32_t, int> spread(const settings& chosen) {
  const workload plan(chosen, "x");
  std::map<std::uint32_t, int> seen;
  for (std::uint64_t number = 0; number < 10'000; ++number)
    ++seen[plan.plan(0, number).session];
  return seen;
}

} // namespace

BOOST_DATA_TEST_CASE(settings_that_cannot_be_run_are_refused,
                     data::make(refused_settings),
                     row) {
  settings chosen;
  BOOST_TEST(check_settings(chosen).has_value());
  row.change(chosen);
  const auto checked = check_settings(chosen);
  BOOST_TEST(code_of(checked) == "invalid_argument");
  BOOST_TEST(reason_of(checked).find(row.reason) != std::string::npos,
             reason_of(checked));
}

BOOST_AUTO_TEST_CASE(a_mix_is_read_and_written) {
  const std::string text = "session:add=7,session+user:set=2,app:cas=0.5,"
                           "session+user+app:append=1";
  const auto mix = read_mix(text).value();
  BOOST_TEST(mix.size() == 4U);
  BOOST_TEST(!mix[2].session);
  BOOST_TEST(to_string(mix) == text);
  BOOST_TEST(read_mix("user:add").value()[0].weight == 1);
}

BOOST_DATA_TEST_CASE(a_bad_mix_is_refused, data::make(bad_mixes), text) {
  BOOST_TEST(code_of(read_mix(text)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_appends) {
  settings chosen;
  const workload one(chosen, "x");
  const workload two(chosen, "y");
  chosen.seed = 2;
  const workload other(chosen, "x");
  int differing = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    const auto first = one.plan(3, number);
    const auto second = two.plan(3, number);
    BOOST_TEST(first.session == second.session);
    BOOST_TEST(first.entry == second.entry);
    differing += first.session != other.plan(3, number).session ? 1 : 0;
  }
  BOOST_TEST(differing > 50);
}

BOOST_AUTO_TEST_CASE(appends_are_spread_over_sessions_as_chosen) {
  settings chosen;
  chosen.sessions = 10;
  const auto evenly = spread(chosen);
  BOOST_TEST(evenly.size() == 10U);
  for (const auto& [session, count] : evenly)
    BOOST_TEST((count > 800 && count < 1'200));
  chosen.zipf = 1;
  const auto skewed = spread(chosen);
  // The expected shares are 1/rank divided by the harmonic number 2.93.
  BOOST_TEST((skewed.at(0) > 3'100 && skewed.at(0) < 3'700));
  BOOST_TEST((skewed.at(9) > 250 && skewed.at(9) < 450));
  chosen.zipf = 0;
  chosen.hot = true;
  BOOST_TEST(spread(chosen).size() == 1U);
}

BOOST_AUTO_TEST_CASE(ids_say_whose_append_it_is) {
  const auto id = workload::identity_of(workload::id_of(7, 123)).value();
  BOOST_TEST(id.caller == 7U);
  BOOST_TEST(id.number == 123U);
  for (const auto* stranger : {"",
                               "load",
                               "load-1",
                               "load-1-2-3",
                               "load-x-1",
                               "load-1-",
                               "load-01-2",
                               "other-1-2"})
    BOOST_TEST(!workload::identity_of(stranger).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
