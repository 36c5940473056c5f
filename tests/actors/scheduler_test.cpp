// The scheduler under CAF: systems that start and stop, work from inside and
// outside, and no leftovers.

#include "troupe/actors/engine/scheduler.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/ref_counted.hpp>
#include <caf/resumable.hpp>
#include <caf/scoped_actor.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <string>
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

caf::behavior counting_down(caf::event_based_actor* self, std::latch* handled) {
  return {[self, handled](int) {
    handled->count_down();
    self->quit();
  }};
}

// Sends to all of `behind`, and blocks its worker until they have handled it.
caf::behavior waiting_for(caf::event_based_actor* self,
                          const std::vector<caf::actor>* behind,
                          std::latch* handled) {
  return {[self, behind, handled](int number) {
    for (const auto& each : *behind)
      self->send(each, number);
    handled->wait();
    self->quit();
    return number;
  }};
}

// The same; tells when it has ended.
caf::behavior blocking(caf::event_based_actor* self,
                       const std::vector<caf::actor>* behind,
                       std::latch* handled,
                       std::latch* ended) {
  return {[self, behind, handled, ended](int number) {
    for (const auto& each : *behind)
      self->send(each, number);
    handled->wait();
    self->quit();
    ended->count_down();
  }};
}

// Sends each number back to its sender, until it stops.
caf::behavior playing(caf::event_based_actor* self,
                      const std::atomic<bool>* stop) {
  return {[self, stop](int number) {
    if (!*stop)
      self->send(caf::actor_cast<caf::actor>(self->current_sender()), number);
  }};
}

/// A job that calls a function.
class calling : public caf::resumable, public caf::ref_counted {
public:
  explicit calling(std::function<void()> work) : work_(std::move(work)) {}

  resume_result resume(caf::execution_unit*, std::size_t) override {
    work_();
    return done;
  }

  subtype_t subtype() const override { return function_object; }

  void intrusive_ptr_add_ref_impl() override { intrusive_ptr_add_ref(this); }

  void intrusive_ptr_release_impl() override { intrusive_ptr_release(this); }

private:
  const std::function<void()> work_;
};

calling* writing(std::string& order, std::latch& ended, char sign) {
  return new calling([&order, &ended, sign] {
    order += sign;
    ended.count_down();
  });
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

// The first message goes into the slot of the busy worker, the others into its
// queue. The busy job waits until all of them were handled.
BOOST_DATA_TEST_CASE(jobs_behind_a_long_one_are_taken_by_others,
                     data::make({1, 2, 7}),
                     waiting) {
  fair_system on(2);
  for (int round = 0; round < 20; ++round) {
    std::latch handled(waiting);
    std::vector<caf::actor> behind;
    for (int index = 0; index < waiting; ++index)
      behind.push_back(on.system.spawn(counting_down, &handled));
    caf::scoped_actor self(on.system);
    bool is_done = false;
    self
      ->request(
        on.system.spawn(waiting_for, &behind, &handled), caf::infinite, 1)
      .receive([&](int) { is_done = true; }, [](const caf::error&) {});
    BOOST_TEST(is_done);
  }
}

// Of three workers one blocks with a job behind it, and another one blocks with
// a job from outside. The third one runs the job behind, also if it slept while
// the second one looked for such jobs.
BOOST_AUTO_TEST_CASE(a_worker_looks_for_jobs_behind_long_ones_after_another) {
  constexpr int rounds = 2'000;
  fair_system on(3);
  const std::vector<caf::actor> nothing;
  for (int round = 0; round < rounds; ++round) {
    std::latch handled(1);
    std::latch ended(2);
    const std::vector<caf::actor> behind
      = {on.system.spawn(counting_down, &handled)};
    const auto first = on.system.spawn(blocking, &behind, &handled, &ended);
    const auto second = on.system.spawn(blocking, &nothing, &handled, &ended);
    // The times between the jobs decide which workers sleep.
    std::this_thread::sleep_for(std::chrono::microseconds(round % 17 * 50));
    caf::anon_send(first, 1);
    std::this_thread::sleep_for(std::chrono::microseconds(round % 13 * 50));
    caf::anon_send(second, 1);
    ended.wait();
  }
}

BOOST_DATA_TEST_CASE(actors_that_wake_each_other_do_not_keep_others_waiting,
                     data::make({1U, 2U}),
                     threads) {
  // The last messages are handled while the system ends.
  std::atomic<bool> stop{false};
  std::atomic<int> count = 0;
  fair_system on(threads);
  for (unsigned pair = 0; pair < threads; ++pair) {
    const auto left = on.system.spawn(playing, &stop);
    const auto right = on.system.spawn(playing, &stop);
    caf::send_as(right, left, 1);
  }
  caf::scoped_actor self(on.system);
  const auto counter = on.system.spawn(counting, &count);
  for (int round = 0; round < 100; ++round)
    self->request(counter, caf::infinite, 1)
      .receive([](int) {}, [](const caf::error&) {});
  BOOST_TEST(count == 100);
  stop = true;
}

// The worker is busy until all jobs are there.
BOOST_DATA_TEST_CASE(jobs_behind_all_others_run_last,
                     data::make({true, false}),
                     from_outside) {
  std::string order;
  std::latch ended(6);
  std::latch running(1);
  std::latch all_there(1);
  fair_system on(1);
  auto& system = on.system;
  const auto fill = [&order, &ended, &system] {
    for (int index = 0; index < 3; ++index) {
      schedule_behind(system, writing(order, ended, 'b'));
      schedule(system, writing(order, ended, 'a'));
    }
  };
  schedule(system, new calling([&] {
             running.count_down();
             if (!from_outside)
               fill();
             all_there.wait();
           }));
  running.wait();
  if (from_outside)
    fill();
  all_there.count_down();
  ended.wait();
  BOOST_TEST(order == "aaabbb");
}

BOOST_DATA_TEST_CASE(a_sleeping_worker_wakes_for_a_job_behind_all_others,
                     data::make({1U, 2U}),
                     threads) {
  fair_system on(threads);
  for (int round = 0; round < 1'000; ++round) {
    std::latch ended(1);
    schedule_behind(on.system, new calling([&] { ended.count_down(); }));
    ended.wait();
  }
}

BOOST_DATA_TEST_CASE(jobs_behind_all_others_run_under_load,
                     data::make({1U, 2U}),
                     threads) {
  std::atomic<bool> stop{false};
  fair_system on(threads);
  for (unsigned pair = 0; pair < 2 * threads; ++pair) {
    const auto left = on.system.spawn(playing, &stop);
    const auto right = on.system.spawn(playing, &stop);
    caf::send_as(right, left, 1);
  }
  for (int round = 0; round < 100; ++round) {
    std::latch ended(1);
    schedule_behind(on.system, new calling([&] { ended.count_down(); }));
    ended.wait();
  }
  stop = true;
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
