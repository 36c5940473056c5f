// The times of models' and tools' work in events, and the reported size of
// commits.

#include "troupe/agents/turns/step_times.hpp"

#include "agent_fixture.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(timings)

namespace {

// Returns every step of a session as "KIND NAME".
std::vector<std::string> steps_in(agent_fixture& on) {
  std::vector<std::string> told;
  for (const auto& said : on.events(on.key))
    for (const auto& step : steps_of(*said)) {
      BOOST_TEST((step.began <= step.ended));
      BOOST_TEST((step.ended <= said->timestamp));
      told.push_back((step.kind == step_kind::model ? "model " : "tool ")
                     + step.name);
    }
  return told;
}

agent caller_of_two_tools() {
  scripted_reply both;
  both.function_calls = {{"", "look", json::object()}, {"", "fail", {}}};
  return asks(
    "a",
    scripted({{"a", {both, {.text = "done"}}}}),
    {tool_of("look", [](const json&, tool_context&) { return json(); }),
     tool_of("fail", [](const json&, tool_context&) -> json {
       throw std::runtime_error("no");
     })});
}

} // namespace

BOOST_AUTO_TEST_CASE(events_tell_the_steps_of_a_run_that_asks_for_it) {
  agent_fixture on;
  on.perform(caller_of_two_tools(), {.step_times = true});
  BOOST_TEST(steps_in(on)
             == (std::vector<std::string>{
               "model scripted", "tool look", "tool fail", "model scripted"}));
}

BOOST_AUTO_TEST_CASE(other_runs_tell_nothing) {
  agent_fixture on;
  on.perform(caller_of_two_tools());
  BOOST_TEST(steps_in(on).empty());
}

BOOST_AUTO_TEST_CASE(commits_in_memory_and_over_a_store_tell_their_events) {
  for (const bool stored : {false, true}) {
    std::atomic<std::size_t> events = 0;
    const staged_place place;
    auto options = stored ? place.options() : runtime_options();
    options.on_commit = [&events](std::size_t count) { events += count; };
    auto owners = runtime::open(std::move(options)).value();
    const auto key = owners.sessions().create({"a", "u", "s"}).value().key();
    for (int number = 0; number < 5; ++number)
      owners.sessions().append_event(key, event(text("hi"))).value();
    owners.shut_down().value();
    // The creation is one more.
    BOOST_TEST(events == 6U);
  }
}

BOOST_AUTO_TEST_SUITE_END()
