// Appends that come faster than the store commits them, in simulated time.

#include "counting.hpp"
#include "staged_store.hpp"
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(append_waits, *boost::unit_test::timeout(120))

namespace {

// A runtime whose next two commits take 200 ms each, once the test opens their
// gates.
class slow_stage {
public:
  slow_stage() : on(options()) {
    on.open();
    place.script->each_commit([this] {
      if (commits_ < std::size(gates))
        gates[commits_++].pass();
      time->advance(200ms);
      return store_script::step::work;
    });
  }

  void append(answers<event_ptr>& told, std::size_t count = 1) {
    for (; count > 0; --count)
      on.sessions().append_event(here, counting()).then(told.next());
  }

  std::shared_ptr<simulated_environment> time
    = std::make_shared<simulated_environment>(1);
  staged_place place;
  gate gates[2];
  runtime_fixture on;

private:
  runtime_options options() const {
    auto chosen = place.options();
    chosen.append_wait_max = 1s;
    chosen.environment = time;
    return chosen;
  }

  std::size_t commits_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(an_append_that_would_wait_for_too_long_is_refused) {
  slow_stage slow;
  answers<event_ptr> accepted;
  slow.append(accepted);
  slow.gates[0].await_arrival();
  // No append is refused before the rate of the store is known.
  slow.append(accepted, 99);
  slow.gates[0].open();
  slow.gates[1].await_arrival();
  answers<event_ptr> late;
  slow.append(late);
  slow.gates[1].open();
  BOOST_TEST(code_of(late.await()[0]) == "busy");
  for (const auto& each : accepted.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(slow.on.fetch(here).revision() == 100U);
  slow.time->advance(1s);
  BOOST_TEST(slow.on.append(here, counting()) == "ok");
}

BOOST_AUTO_TEST_CASE(a_store_that_stands_still_refuses_after_a_while) {
  slow_stage slow;
  answers<event_ptr> accepted;
  slow.append(accepted);
  slow.gates[0].await_arrival();
  slow.time->advance(1s);
  slow.append(accepted);
  slow.time->advance(1ms);
  BOOST_TEST(slow.on.append(here, counting()) == "busy");
  slow.gates[0].open();
  slow.gates[1].open();
  for (const auto& each : accepted.await())
    BOOST_TEST(code_of(each) == "ok");
  BOOST_TEST(slow.on.append(here, counting()) == "ok");
}

BOOST_AUTO_TEST_SUITE_END()
