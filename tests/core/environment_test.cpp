// Time and ids: unique, well-formed, and replayed by a seed when simulated.

#include "troupe/core/environment.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace std::chrono_literals;

namespace {

bool is_uuid_v4(const std::string& id) {
  if (id.size() != 36)
    return false;
  for (std::size_t index = 0; index < id.size(); ++index) {
    const bool dash = index == 8 || index == 13 || index == 18 || index == 23;
    if (dash ? id[index] != '-'
             : std::string("0123456789abcdef").find(id[index])
                 == std::string::npos)
      return false;
  }
  return id[14] == '4' && std::string("89ab").find(id[19]) != std::string::npos;
}

} // namespace

BOOST_AUTO_TEST_SUITE(id_sources)

BOOST_AUTO_TEST_CASE(ids_are_uuids_of_version_4_and_unique) {
  id_source source(1, 2);
  std::set<std::string> seen;
  for (int count = 0; count < 20'000; ++count) {
    const auto id = source.next();
    BOOST_REQUIRE(is_uuid_v4(id));
    BOOST_REQUIRE(seen.insert(id).second);
  }
}

BOOST_AUTO_TEST_CASE(a_seed_replays_its_ids) {
  id_source first(7, 8);
  id_source second(7, 8);
  id_source other(7, 9);
  id_source another(8, 8);
  for (int count = 0; count < 100; ++count) {
    const auto id = first.next();
    BOOST_TEST(second.next() == id);
    BOOST_TEST(other.next() != id);
    BOOST_TEST(another.next() != id);
  }
}

BOOST_AUTO_TEST_CASE(ids_made_on_several_threads_are_unique) {
  id_source source(3, 4);
  std::vector<std::vector<std::string>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made)
    threads.emplace_back([&source, &mine] {
      for (int count = 0; count < 2000; ++count)
        mine.push_back(source.next());
    });
  for (auto& thread : threads)
    thread.join();
  std::set<std::string> seen;
  for (const auto& mine : made)
    seen.insert(mine.begin(), mine.end());
  BOOST_TEST(seen.size() == 8000U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(simulated_environments)

BOOST_AUTO_TEST_CASE(time_moves_only_when_it_is_told_to) {
  simulated_environment simulated(1);
  const auto start = simulated.now();
  BOOST_TEST((start != timestamp()));
  BOOST_TEST((simulated.now() == start));
  simulated.advance(1500us);
  BOOST_TEST((simulated.now() - start == 1500us));
  simulated.advance(0ns);
  BOOST_TEST((simulated.now() - start == 1500us));
}

BOOST_AUTO_TEST_CASE(calls_run_in_order_of_time_and_then_of_asking) {
  simulated_environment simulated(1);
  std::string order;
  for (const auto& [delay, name] :
       std::vector<std::pair<std::chrono::seconds, char>>{
         {3s, 'd'}, {1s, 'a'}, {2s, 'b'}, {2s, 'c'}, {9s, 'x'}})
    simulated.call_after(delay, [&order, name = name] { order += name; });
  BOOST_TEST(simulated.waiting() == 5U);
  BOOST_TEST(order.empty());
  simulated.advance(999ms);
  BOOST_TEST(order.empty());
  simulated.advance(1ms);
  BOOST_TEST(order == "a");
  simulated.advance(5s);
  BOOST_TEST(order == "abcd");
  BOOST_TEST(simulated.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(a_call_sees_its_own_time_and_may_ask_for_more) {
  simulated_environment simulated(1);
  const auto start = simulated.now();
  std::vector<std::int64_t> seconds;
  const auto note = [&] { seconds.push_back((simulated.now() - start) / 1s); };
  simulated.call_after(1s, [&] {
    note();
    simulated.call_after(1s, note);
    simulated.call_after(0s, note);
    simulated.call_after(60s, note);
  });
  simulated.advance(10s);
  BOOST_TEST(seconds == std::vector<std::int64_t>({1, 1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(((simulated.now() - start) == 10s));
  BOOST_TEST(simulated.waiting() == 1U);
}

BOOST_AUTO_TEST_CASE(a_call_that_is_due_at_once_still_waits_to_be_run) {
  simulated_environment simulated(1);
  bool ran = false;
  simulated.call_after(0s, [&ran] { ran = true; });
  BOOST_TEST(!ran);
  simulated.advance(0s);
  BOOST_TEST(ran);
}

BOOST_AUTO_TEST_CASE(the_seed_replays_the_ids) {
  simulated_environment first(5);
  simulated_environment second(5);
  simulated_environment other(6);
  for (int count = 0; count < 10; ++count) {
    const auto id = first.new_id();
    BOOST_TEST(is_uuid_v4(id));
    BOOST_TEST(second.new_id() == id);
    BOOST_TEST(other.new_id() != id);
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(system_environments)

BOOST_AUTO_TEST_CASE(time_is_the_systems) {
  const auto before = std::chrono::system_clock::now();
  const auto now = system_environment()->now();
  BOOST_TEST((now >= std::chrono::floor<std::chrono::microseconds>(before)));
  BOOST_TEST((now <= std::chrono::system_clock::now()));
}

BOOST_AUTO_TEST_CASE(two_environments_make_different_ids) {
  const auto first = system_environment();
  const auto second = system_environment();
  BOOST_TEST(is_uuid_v4(first->new_id()));
  BOOST_TEST(first->new_id() != second->new_id());
}

BOOST_AUTO_TEST_CASE(calls_come_later_on_another_thread) {
  const auto system = system_environment();
  std::promise<std::thread::id> ran;
  const auto begin = std::chrono::steady_clock::now();
  system->call_after(5ms,
                     [&ran] { ran.set_value(std::this_thread::get_id()); });
  BOOST_TEST((ran.get_future().get() != std::this_thread::get_id()));
  BOOST_TEST((std::chrono::steady_clock::now() - begin >= 5ms));
}

BOOST_AUTO_TEST_CASE(what_still_waits_is_dropped_at_the_end) {
  const auto held = std::make_shared<int>();
  {
    const auto system = system_environment();
    system->call_after(1h, [held] { BOOST_ERROR("not before its time"); });
  }
  BOOST_TEST(held.use_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
