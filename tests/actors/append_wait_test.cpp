#include "troupe/actors/parts/append_wait.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>

using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(append_waits)

namespace {

// A store with appends waiting for it, in simulated time.
class busy_store {
public:
  explicit busy_store(std::chrono::nanoseconds wait_max = 1s)
    : wait_(time_, wait_max) {}

  // Adds so many appends to the queue of the store.
  void arrive(std::uint64_t count) {
    if (count > 0)
      wait_.start();
    waiting_ += count;
  }

  // The store commits `count` of them within `time`.
  void take(std::uint64_t count, std::chrono::nanoseconds time) {
    time_.advance(time);
    waiting_ -= count;
    wait_.update({.done = load(count),
                  .under_way = load(waiting_ + count),
                  .has_more = waiting_ > 0});
  }

  // It commits none of them within `time`, since others were first.
  void lose(std::chrono::nanoseconds time) {
    time_.advance(time);
    wait_.update({.under_way = load(waiting_),
                  .has_more = true,
                  .is_decided_again = true});
  }

  void pass(std::chrono::nanoseconds time) { time_.advance(time); }

  bool admits() const { return admits_behind(waiting_); }

  // Asks whether an append is admitted with so many under way.
  bool admits_behind(std::uint64_t count) const {
    return wait_.admits(load(count));
  }

private:
  static append_load load(std::uint64_t count) { return {count, 100 * count}; }

  simulated_environment time_{1};
  append_wait wait_;
  std::uint64_t waiting_ = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(without_a_measurement_all_are_admitted) {
  busy_store store;
  BOOST_TEST(store.admits_behind(1'000'000));
  store.arrive(500'000);
  BOOST_TEST(store.admits());
  store.pass(999ms);
  BOOST_TEST(store.admits());
}

BOOST_AUTO_TEST_CASE(a_backlog_shows_the_rate) {
  busy_store store;
  store.arrive(1);
  store.arrive(9);
  store.take(1, 1ms);
  store.arrive(1'000);
  store.take(10, 10ms);
  store.take(100, 100ms); // The rate is 1,000 a second.
  BOOST_TEST(store.admits_behind(900));
  BOOST_TEST(!store.admits_behind(1'100));
}

// The first group that is written is often a small one: most owners still load.
BOOST_AUTO_TEST_CASE(the_time_of_lost_commits_is_no_rate_of_a_small_group) {
  busy_store store;
  store.arrive(64);
  store.lose(150ms);
  store.take(1, 1ms);
  BOOST_TEST(store.admits_behind(1'000));
  // The whole group shows a rate.
  store.arrive(64);
  store.take(63, 9ms);
  BOOST_TEST(store.admits_behind(300));
  BOOST_TEST(!store.admits_behind(20'000));
}

BOOST_AUTO_TEST_CASE(an_append_that_finds_nothing_under_way_is_admitted) {
  busy_store store(100ms);
  store.arrive(3);
  store.take(1, 90ms);
  BOOST_TEST(store.admits_behind(1));
  BOOST_TEST(!store.admits_behind(2));
  store.take(1, 900ms);
  BOOST_TEST(!store.admits_behind(1));
  BOOST_TEST(store.admits_behind(0));
}

BOOST_AUTO_TEST_CASE(large_events_take_longer) {
  simulated_environment time(1);
  append_wait wait(time, 1s);
  wait.start();
  // A mebibyte each, a hundred a second.
  constexpr std::uint64_t each = 1U << 20U;
  time.advance(500ms);
  wait.update({.done = {50, 50 * each},
               .under_way = {200, 200 * each},
               .has_more = true});
  BOOST_TEST(wait.admits({80, 80 * each}));
  BOOST_TEST(!wait.admits({120, 120 * each}));
  BOOST_TEST(wait.admits({10'000, 10'000}));
}

// A small commit mostly waits for the disk. A large one would wait as long, so
// small ones do not show the rate.
BOOST_AUTO_TEST_CASE(few_appends_show_no_rate) {
  busy_store store;
  store.arrive(4);
  for (int count = 0; count < 100; ++count) {
    store.take(2, 15ms);
    store.arrive(2);
  }
  BOOST_TEST(store.admits_behind(100'000));
}

BOOST_AUTO_TEST_CASE(a_store_that_stands_still_refuses_until_it_goes_on) {
  busy_store store;
  store.arrive(1);
  store.pass(1s);
  BOOST_TEST(store.admits());
  store.pass(1ms);
  BOOST_TEST(!store.admits());
  BOOST_TEST(!store.admits_behind(0));
  store.take(1, 30s);
  BOOST_TEST(store.admits());
  store.arrive(1);
  BOOST_TEST(store.admits());
}

BOOST_AUTO_TEST_CASE(the_rate_follows_a_store_that_slows_down) {
  busy_store store;
  store.arrive(100'000);
  store.take(1'000, 100ms);
  BOOST_TEST(store.admits_behind(5'000));
  store.take(1'000, 1s);
  store.take(1'000, 1s);
  BOOST_TEST(store.admits_behind(500));
  BOOST_TEST(!store.admits_behind(2'000));
  for (int count = 0; count < 4; ++count)
    store.take(1'000, 100ms);
  BOOST_TEST(store.admits_behind(5'000));
}

BOOST_AUTO_TEST_CASE(after_a_pause_the_rate_is_unknown_again) {
  busy_store store;
  store.arrive(300);
  store.take(100, 1s);
  BOOST_TEST(!store.admits_behind(1'000));
  store.take(200, 2s);
  BOOST_TEST(!store.admits_behind(1'000));
  store.pass(200ms);
  BOOST_TEST(store.admits_behind(1'000));
  store.arrive(1);
  BOOST_TEST(store.admits_behind(1'000));
}

// The same without a pause: single appends, answered at once.
BOOST_AUTO_TEST_CASE(without_a_backlog_the_rate_is_forgotten) {
  busy_store store;
  store.arrive(300);
  store.take(100, 1s);
  store.take(200, 2s);
  for (int count = 0; count < 25; ++count) {
    store.arrive(1);
    store.take(1, 50ms);
  }
  store.arrive(1);
  BOOST_TEST(store.admits_behind(100'000));
}

// The owners are slower than the store, whose queue is empty most of the time.
BOOST_AUTO_TEST_CASE(a_backlog_in_front_of_the_owners_shows_the_rate) {
  simulated_environment time(1);
  append_wait wait(time, 1s);
  for (int count = 0; count < 10; ++count) {
    time.advance(9ms);
    wait.start();
    time.advance(1ms);
    wait.update({.done = {20, 2'000}, .under_way = {50'000, 5'000'000}});
  }
  BOOST_TEST(wait.admits({1'500, 150'000}));
  BOOST_TEST(!wait.admits({3'000, 300'000}));
  // The appends wait for something other than the store.
  time.advance(200ms);
  BOOST_TEST(wait.admits({3'000, 300'000}));
}

BOOST_AUTO_TEST_CASE(zero_refuses_nothing) {
  busy_store store(0s);
  store.arrive(100'000);
  store.take(100, 10s);
  store.pass(10s);
  BOOST_TEST(store.admits());
}

BOOST_AUTO_TEST_SUITE_END()
