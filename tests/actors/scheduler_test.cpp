// The scheduler under CAF: systems that start and stop, work from inside and
// outside, and no leftovers.

#include "troupe/actors/engine/scheduler.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scoped_actor.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace troupe::actors;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(fair_scheduler, *boost::unit_test::timeout(100))

namespace {

class fair_system {
public:
  explicit fair_system(std::size_t threads)
    : config_(make(threads)),
      system(*config_) {}

private:
  static std::unique_ptr<caf::actor_system_config> make(std::size_t threads) {
    auto config = std::make_unique<caf::actor_system_config>();
    install_scheduler(*config, threads);
    return config;
  }

  std::unique_ptr<caf::actor_system_config> config_;

public:
  caf::actor_system system;
};

caf::behavior counting(caf::event_based_actor*, std::atomic<int>* count) {
  return {[count](int number) {
    *count += number;
    return number;
  }};
}

// Sends a number, less one, to a new actor.
caf::behavior handing_down(caf::event_based_actor* self,
                           std::atomic<int>* count) {
  return {[self, count](int left) {
    ++*count;
    if (left > 0)
      self->send(self->spawn(handing_down, count), left - 1);
    self->quit();
  }};
}

// The argument is not used, but without one CAF 0.17 dereferences a null
// pointer.
caf::behavior asked_where(caf::event_based_actor*, int) {
  return {[](int) { return is_worker_thread(); }};
}

} // namespace

BOOST_DATA_TEST_CASE(short_lived_systems_start_and_end,
                     data::make({1U, 2U, 5U}),
                     threads) {
  for (int round = 0; round < 150; ++round) {
    std::atomic<int> count = 0;
    {
      fair_system on(threads);
      for (int index = 0; index < round % 7; ++index)
        caf::anon_send(on.system.spawn(counting, &count), 1);
    }
    BOOST_TEST(count == round % 7);
  }
}

BOOST_DATA_TEST_CASE(everything_sent_is_handled,
                     data::make({1U, 2U, 4U}),
                     threads) {
  std::atomic<int> count = 0;
  {
    fair_system on(threads);
    std::vector<caf::actor> actors;
    for (int index = 0; index < 20; ++index)
      actors.push_back(on.system.spawn(counting, &count));
    std::vector<std::thread> senders;
    for (int sender = 0; sender < 4; ++sender)
      senders.emplace_back([&] {
        for (int round = 0; round < 500; ++round)
          for (const auto& each : actors)
            caf::anon_send(each, 1);
      });
    for (auto& each : senders)
      each.join();
  }
  BOOST_TEST(count == 40'000);
}

BOOST_AUTO_TEST_CASE(chains_of_actors_come_to_their_end) {
  std::atomic<int> count = 0;
  {
    fair_system on(2);
    for (int chain = 0; chain < 50; ++chain)
      caf::anon_send(on.system.spawn(handing_down, &count), 100);
  }
  BOOST_TEST(count == 50 * 101);
}

BOOST_AUTO_TEST_CASE(sleeping_workers_wake_for_each_request) {
  fair_system on(2);
  std::atomic<int> count = 0;
  const auto counter = on.system.spawn(counting, &count);
  caf::scoped_actor self(on.system);
  int wrong = 0;
  for (int number = 0; number < 3'000; ++number)
    self->request(counter, caf::infinite, number)
      .receive([&](int same) { wrong += same != number; },
               [&](const caf::error&) { ++wrong; });
  BOOST_TEST(wrong == 0);
}

BOOST_AUTO_TEST_CASE(a_worker_knows_that_it_is_one) {
  fair_system on(1);
  std::atomic<int> told = 0;
  BOOST_TEST(!is_worker_thread());
  caf::scoped_actor self(on.system);
  const auto asked = on.system.spawn(asked_where, 1);
  self->request(asked, caf::infinite, 1)
    .receive([&](bool yes) { told = yes ? 1 : 2; },
             [&](const caf::error&) { told = 3; });
  BOOST_TEST(told == 1);
}

BOOST_AUTO_TEST_SUITE_END()
