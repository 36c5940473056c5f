// Threads that wait for one answer each, alone and in batches.

#include "troupe/actors/engine/blocked_thread.hpp"

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

using namespace troupe::actors;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(blocked_threads, *boost::unit_test::timeout(100))

BOOST_AUTO_TEST_CASE(a_wait_that_is_over_does_not_block) {
  blocked_thread waiting;
  BOOST_TEST(!waiting.is_woken());
  waiting.wake();
  BOOST_TEST(waiting.is_woken());
  waiting.wait();
}

BOOST_AUTO_TEST_CASE(a_thread_waits_again_and_again) {
  std::atomic<blocked_thread*> current{nullptr};
  constexpr int rounds = 20'000;
  std::thread waker([&] {
    for (int round = 0; round < rounds; ++round) {
      blocked_thread* found = nullptr;
      while ((found = current.exchange(nullptr)) == nullptr)
        std::this_thread::yield();
      found->wake();
    }
  });
  for (int round = 0; round < rounds; ++round) {
    blocked_thread waiting;
    current = &waiting;
    waiting.wait();
    if (!waiting.is_woken())
      BOOST_ERROR("a wait ended before it was woken");
  }
  waker.join();
}

// Each woken thread wakes the next, whether it has parked or not.
BOOST_DATA_TEST_CASE(a_batch_wakes_all_of_its_threads,
                     data::make({1, 2, 40}),
                     count) {
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<blocked_thread>> all;
    for (int index = 0; index < count; ++index)
      all.push_back(std::make_unique<blocked_thread>());
    std::latch started(count);
    std::atomic<int> ended = 0;
    std::vector<std::thread> threads;
    for (auto& each : all)
      threads.emplace_back([&] {
        started.count_down();
        each->wait();
        ++ended;
      });
    started.wait();
    {
      const wake_batch outer;
      {
        const wake_batch inner; // Its threads belong to the outer batch.
        all.front()->wake();
      }
      for (int index = 1; index < count; ++index)
        all[static_cast<std::size_t>(index)]->wake();
    }
    for (auto& each : threads)
      each.join();
    BOOST_TEST(ended == count);
  }
}

BOOST_AUTO_TEST_SUITE_END()
