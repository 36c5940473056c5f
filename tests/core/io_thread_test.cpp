// The timers of the thread that serves child processes.

#include "troupe/core/processes/io_thread.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>

using troupe::processes::io_thread;

BOOST_AUTO_TEST_SUITE(io_threads)

BOOST_AUTO_TEST_CASE(a_timer_calls_after_its_time) {
  io_thread thread;
  std::promise<void> called;
  std::shared_ptr<void> timer;
  thread.post([&] {
    timer = thread.call_after(std::chrono::milliseconds(1),
                              [&called] { called.set_value(); });
  });
  called.get_future().wait();
  thread.finish();
}

// Both timers have expired before the first one is handled. The second one
// would otherwise send a signal to a process that was reaped.
BOOST_AUTO_TEST_CASE(a_timer_that_is_due_can_be_cancelled) {
  using clock = std::chrono::steady_clock;
  constexpr auto soon = std::chrono::milliseconds(1);
  io_thread thread;
  std::shared_ptr<void> first;
  std::shared_ptr<void> second;
  int calls = 0;
  thread.post([&] {
    // Whichever comes first cancels the other one.
    const auto begin = clock::now();
    first = thread.call_after(soon, [&] {
      ++calls;
      second = nullptr;
    });
    second = thread.call_after(soon, [&] {
      ++calls;
      first = nullptr;
    });
    while (clock::now() < begin + 5 * soon) {
    }
  });
  thread.finish();
  BOOST_TEST(calls == 1);
}

BOOST_AUTO_TEST_SUITE_END()
