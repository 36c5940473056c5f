// Sweeps: the settings that can vary, their order, and the table.

#include "troupe/load/pages/sweep.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace troupe::load;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(sweeps)

namespace {

const std::vector<std::string> bad_variations = {"callers",
                                                 "callers=",
                                                 "callers=1,,2",
                                                 "callers=x",
                                                 "callers=-1",
                                                 "moons=1",
                                                 "store=nowhere",
                                                 "durability=some",
                                                 "rate=0",
                                                 "zipf=-1"};

} // namespace

BOOST_AUTO_TEST_CASE(every_combination_is_run_the_last_setting_fastest) {
  const auto callers = read_variation("callers=1,8").value();
  const auto rate = read_variation("rate=100,200.5").value();
  const auto steps = plan_sweep({}, {callers, rate}).value();
  std::string seen;
  for (const auto& step : steps) {
    seen += step.values[0] + "/" + step.values[1] + " ";
    BOOST_TEST((step.chosen.arrival == arrival::open));
  }
  BOOST_TEST(seen == "1/100 1/200.5 8/100 8/200.5 ");
  BOOST_TEST(steps[3].chosen.callers == 8U);
  BOOST_TEST(steps[3].chosen.rate == 200.5);
}

BOOST_DATA_TEST_CASE(what_cannot_be_varied_is_refused,
                     data::make(bad_variations),
                     text) {
  BOOST_TEST(code_of(read_variation(text)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(what_could_not_be_run_is_refused_before_anything_is) {
  const auto callers = read_variation("callers=1,8").value();
  BOOST_TEST(code_of(plan_sweep({}, {})) == "invalid_argument");
  BOOST_TEST(code_of(plan_sweep({}, {callers, callers})) == "invalid_argument");
  BOOST_TEST(code_of(plan_sweep({}, {callers, callers, callers}))
             == "invalid_argument");
  const auto failed = plan_sweep({}, {read_variation("users=1,1000").value()});
  BOOST_TEST(code_of(failed) == "invalid_argument");
  BOOST_TEST(reason_of(failed).starts_with("with users=1000: "),
             reason_of(failed));
}

BOOST_AUTO_TEST_CASE(what_contradicts_itself_is_refused) {
  const auto plan = [](settings base, std::vector<std::string> texts) {
    std::vector<variation> varied;
    for (const auto& text : texts)
      varied.push_back(read_variation(text).value());
    return plan_sweep(base, varied);
  };
  BOOST_TEST(code_of(plan({}, {"arrival=closed,open", "rate=10,20"}))
             == "invalid_argument");
  BOOST_TEST(code_of(plan({}, {"rate=10,20", "arrival=open,closed"}))
             == "invalid_argument");
  settings counted;
  counted.appends = 100;
  BOOST_TEST(code_of(plan(counted, {"duration=1,2"})) == "invalid_argument");
  const auto steps = plan({}, {"rate=10,20"}).value();
  BOOST_TEST((steps[1].chosen.arrival == arrival::open));
  BOOST_TEST(steps[1].chosen.rate == 20);
}

BOOST_AUTO_TEST_CASE(a_password_is_not_shown) {
  const auto stores
    = read_variation("store=memory:,postgres://me:s3cret@host/x").value();
  auto steps = plan_sweep({}, {stores}).value();
  sweep done{{}, {stores}, {row_of(steps[1], outcome())}, {}};
  BOOST_TEST(to_text(done).find("s3cret") == std::string::npos);
  BOOST_TEST(to_json(done).dump().find("s3cret") == std::string::npos);
  BOOST_TEST(to_text(done).find("postgres://me:***@host/x")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_row_tells_what_came_of_a_step) {
  const auto callers = read_variation("callers=1,8").value();
  auto steps = plan_sweep({}, {callers}).value();
  std::vector<sweep_row> rows;
  for (auto& step : steps) {
    step.chosen.appends = 100;
    rows.push_back(row_of(step, run_load_test(step.chosen, {}, {}).value()));
  }
  BOOST_TEST(rows[1].values[0] == "8");
  BOOST_TEST(rows[1].holds);
  BOOST_TEST(rows[1].rate > 0);
  BOOST_TEST((rows[1].p50 > 0ns && rows[1].p50 <= rows[1].p99_9));
  const sweep done{{}, {callers}, rows, {}};
  const auto text = to_text(done);
  BOOST_TEST(text.starts_with("callers     appends/s"), text);
  BOOST_TEST(text.find("##############################") != std::string::npos);
  const auto all = to_json(done);
  BOOST_TEST(all.at("vary")[0].at("values") == json({"1", "8"}));
  const auto& written = all.at("rows");
  BOOST_TEST(written[0].at("values").at("callers") == "1");
  BOOST_TEST(written[1].at("holds") == true);
}

BOOST_AUTO_TEST_SUITE_END()
