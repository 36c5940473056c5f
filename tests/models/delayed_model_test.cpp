// Latencies from distributions: valid settings, the drawn values, and the time
// when the inner model is asked.

#include "troupe/models/delayed_model.hpp"

#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(delayed_models)

namespace {

latency latency_of(const char* text) {
  return latency_from_json(parse_json(text).value()).value();
}

const std::vector<std::string> refused{
  "3",
  "{}",
  R"({"constant": 1, "uniform": 2})",
  R"({"normal": 3})",
  R"({"constant": -1})",
  R"({"constant": "1"})",
  R"({"constant": 1e12})",
  R"({"uniform": {"from_ms": 5}})",
  R"({"uniform": {"from_ms": 5, "to_ms": 4}})",
  R"({"exponential": {"mean_ms": 5, "median_ms": 5}})",
  R"({"exponential": 5})",
  R"({"lognormal": {"median_ms": 0, "p99_ms": 5}})",
  R"({"lognormal": {"median_ms": 9, "p99_ms": 5}})",
};

// A delayed model on simulated time. `asked` lists the agents whose calls have
// reached the inner model, in order.
struct delayed {
  explicit delayed(latencies delays, std::uint64_t seed = 1)
    : model(std::make_shared<scripted_model>(script{{"*", {{.text = "hi"}}}}),
            std::move(delays),
            seed) {}

  void ask(const std::string& agent) {
    model_request request;
    request.agent = agent;
    request.environment = time;
    model.generate(std::move(request),
                   [this, agent](const result<model_response>& answer) {
                     BOOST_TEST(answer.has_value());
                     answered.push_back(agent);
                   });
  }

  std::shared_ptr<simulated_environment> time
    = std::make_shared<simulated_environment>(7);
  std::vector<std::string> answered;
  delayed_model model;
};

// Returns the times of an agent's answers, asked one after another.
std::vector<std::chrono::milliseconds>
times_of(const std::string& agent, std::uint64_t seed, bool with_others) {
  delayed on(
    {{"*", latency_of(R"({"uniform": {"from_ms": 1, "to_ms": 900}})")}}, seed);
  std::vector<std::chrono::milliseconds> times;
  for (int call = 0; call < 5; ++call) {
    if (with_others)
      on.ask("other");
    on.ask(agent);
    std::chrono::milliseconds waited{0};
    while (std::ranges::find(on.answered, agent) == on.answered.end()) {
      on.time->advance(1ms);
      waited += 1ms;
    }
    std::erase(on.answered, agent);
    times.push_back(waited);
  }
  return times;
}

} // namespace

BOOST_AUTO_TEST_CASE(distributions_have_their_quantiles) {
  BOOST_TEST((latency_of(R"({"constant": 12.5})").at(0.3) == 12'500us));
  const auto uniform
    = latency_of(R"({"uniform": {"from_ms": 100, "to_ms": 200}})");
  BOOST_TEST((uniform.at(0) == 100ms));
  BOOST_TEST((uniform.at(0.25) == 125ms));
  // The median of an exponential distribution is its mean times ln 2.
  const auto exponential = latency_of(R"({"exponential": {"mean_ms": 100}})");
  BOOST_TEST(
    (exponential.at(0.5) > 69'314us && exponential.at(0.5) < 69'315us));
  const auto lognormal
    = latency_of(R"({"lognormal": {"median_ms": 100, "p99_ms": 900}})");
  BOOST_TEST((lognormal.at(0.5) == 100ms));
  BOOST_TEST((lognormal.at(0.99) > 899ms && lognormal.at(0.99) < 901ms));
  BOOST_TEST((lognormal.at(0) == 0ms));
  for (const auto& each : {uniform, exponential, lognormal})
    for (double before = 0; before < 0.99; before += 0.01)
      BOOST_TEST((each.at(before) <= each.at(before + 0.01)));
}

BOOST_DATA_TEST_CASE(what_is_no_distribution_is_refused,
                     data::make(refused),
                     text) {
  const auto read = latency_from_json(parse_json(text).value());
  BOOST_TEST(code_of(read) == "invalid_argument");
  BOOST_TEST(reason_of(read).starts_with("a latency "), reason_of(read));
}

BOOST_AUTO_TEST_CASE(the_answer_comes_when_the_time_has_passed) {
  delayed on({{"slow", latency_of(R"({"constant": 200})")}});
  on.ask("slow");
  on.ask("quick");
  BOOST_TEST(on.answered == std::vector<std::string>{"quick"});
  on.time->advance(199ms);
  BOOST_TEST(on.answered.size() == 1U);
  on.time->advance(1ms);
  BOOST_TEST(on.answered.back() == "slow");
}

BOOST_AUTO_TEST_CASE(a_seed_gives_each_agent_its_own_times_whoever_else_asks) {
  const auto alone = times_of("a", 5, false);
  BOOST_TEST((alone == times_of("a", 5, true)));
  BOOST_TEST((alone != times_of("b", 5, false)));
  BOOST_TEST((alone != times_of("a", 6, false)));
}

BOOST_AUTO_TEST_SUITE_END()
