// The queue of letters of an actor: order, waking, and letters left when it
// closes.

#include "troupe/actors/engine/inbox.hpp"

#include "troupe/actors/messages.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::actors;

BOOST_AUTO_TEST_SUITE(letters, *boost::unit_test::timeout(60))

namespace {

struct counts {
  std::atomic<int> failed = 0;
  std::atomic<int> destroyed = 0;
};

struct numbered : letter {
  numbered(int from, int which, counts* into = nullptr)
    : letter(letter_kind::finished),
      sender(from),
      number(which),
      kept(into) {}

  ~numbered() override {
    if (kept != nullptr)
      ++kept->destroyed;
  }

  void fail(const error&) override {
    if (kept != nullptr)
      ++kept->failed;
  }

  int sender;
  int number;
  counts* kept;
};

inbox::pushed push(inbox& into, int number) {
  letter_ptr sent = std::make_unique<numbered>(0, number);
  return into.push(sent);
}

std::vector<int> numbers(letter_list taken) {
  std::vector<int> all;
  while (!taken.empty()) {
    const auto next = taken.pop_front();
    all.push_back(static_cast<const numbered&>(*next).number);
  }
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_list_keeps_its_order_from_both_ends) {
  letter_list list;
  list.push_back(std::make_unique<numbered>(0, 2));
  list.push_front(std::make_unique<numbered>(0, 1));
  list.push_back(std::make_unique<numbered>(0, 3));
  auto moved = std::move(list);
  BOOST_TEST(numbers(std::move(moved)) == std::vector<int>({1, 2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(letters_left_in_a_list_or_an_inbox_are_destroyed) {
  counts kept;
  {
    letter_list list;
    list.push_back(std::make_unique<numbered>(0, 1, &kept));
    inbox box;
    letter_ptr sent = std::make_unique<numbered>(0, 1, &kept);
    BOOST_TEST((box.push(sent) == inbox::pushed::wake));
  }
  BOOST_TEST(kept.destroyed == 2);
}

BOOST_AUTO_TEST_CASE(only_the_first_letter_to_a_sleeper_wakes_it) {
  inbox box;
  BOOST_TEST((push(box, 1) == inbox::pushed::wake));
  BOOST_TEST((push(box, 2) == inbox::pushed::quiet));
  BOOST_TEST(numbers(box.take()) == std::vector<int>({1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST((push(box, 3) == inbox::pushed::quiet)); // The reader is awake.
  BOOST_TEST(!box.try_sleep());
  BOOST_TEST(numbers(box.take()).size() == 1U);
  BOOST_TEST(box.try_sleep());
  BOOST_TEST((push(box, 4) == inbox::pushed::wake));
}

BOOST_AUTO_TEST_CASE(a_closed_inbox_leaves_letters_with_their_senders) {
  inbox box;
  push(box, 1);
  BOOST_TEST(numbers(box.close()).size() == 1U);
  letter_ptr sent = std::make_unique<numbered>(0, 2);
  BOOST_TEST((box.push(sent) == inbox::pushed::closed));
  BOOST_TEST((sent != nullptr));
  BOOST_TEST(box.close().empty());
}

BOOST_AUTO_TEST_CASE(letters_of_many_threads_come_once_and_in_order) {
  constexpr int senders = 4;
  constexpr int each = 50'000;
  inbox box;
  std::atomic<int> wakes = 0; // Signals for the sleeping reader.
  std::vector<std::thread> threads;
  for (int sender = 0; sender < senders; ++sender)
    threads.emplace_back([&, sender] {
      for (int number = 0; number < each; ++number) {
        letter_ptr sent = std::make_unique<numbered>(sender, number);
        if (box.push(sent) == inbox::pushed::wake) {
          ++wakes;
          wakes.notify_one();
        }
      }
    });
  std::vector<int> next(senders, 0);
  int wrong = 0;
  int taken = 0;
  while (taken < senders * each) {
    // A sleeping reader is woken exactly once.
    wakes.wait(0);
    wrong += wakes.fetch_sub(1) != 1;
    do
      for (auto letters = box.take(); !letters.empty(); ++taken) {
        const auto held = letters.pop_front();
        const auto& read = static_cast<const numbered&>(*held);
        wrong += read.number != next[static_cast<std::size_t>(read.sender)]++;
      }
    while (!box.try_sleep());
  }
  for (auto& thread : threads)
    thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(wakes == 0);
}

BOOST_AUTO_TEST_CASE(closing_under_fire_loses_no_letter) {
  for (int round = 0; round < 200; ++round) {
    counts kept;
    std::atomic<int> refused = 0;
    std::atomic<int> sent_count = 0;
    inbox box;
    std::vector<std::thread> threads;
    for (int sender = 0; sender < 3; ++sender)
      threads.emplace_back([&, sender] {
        for (int number = 0; number < 200; ++number) {
          letter_ptr sent = std::make_unique<numbered>(sender, number, &kept);
          ++sent_count;
          refused += box.push(sent) == inbox::pushed::closed;
        }
      });
    while (sent_count < 100)
      std::this_thread::yield();
    int taken = static_cast<int>(numbers(box.take()).size());
    taken += static_cast<int>(numbers(box.close()).size());
    for (auto& thread : threads)
      thread.join();
    BOOST_TEST(taken + refused == 600);
    BOOST_TEST(kept.destroyed == 600);
  }
}

BOOST_AUTO_TEST_SUITE_END()
