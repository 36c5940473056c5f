// The line of the processes that use one file, in the locks of another file.

#include "troupe/stores/turns/file.hpp"

#include "sqlite_file.hpp"
#include <boost/test/unit_test.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
using namespace std::chrono_literals;

BOOST_AUTO_TEST_SUITE(lines_in_files, *boost::unit_test::timeout(60))

namespace {

struct line {
  temporary_folder folder;
  std::filesystem::path path = folder.path() / "s.db-turns";
  std::chrono::nanoseconds now{10s}; // Since the start of the machine.

  std::unique_ptr<turn_file> open() {
    return std::make_unique<turn_file>(path, [this] { return now; });
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_line_without_others_is_entered_at_once) {
  line one;
  const auto only = one.open();
  BOOST_TEST(!std::filesystem::exists(one.path));
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(only->enter({}, 0ms));
    only->leave();
  }
  BOOST_TEST(std::filesystem::file_size(one.path) == 0U);
}

BOOST_AUTO_TEST_CASE(places_are_in_the_order_of_arrival) {
  line one;
  const auto first = one.open();
  const auto second = one.open();
  BOOST_TEST(first->take_place());
  one.now += 1us;
  BOOST_TEST(second->take_place());
  BOOST_TEST(first->is_first());
  BOOST_TEST(!second->is_first());
  first->leave();
  BOOST_TEST(second->is_first());
  one.now += 1us;
  BOOST_TEST(first->take_place());
  BOOST_TEST(!first->is_first());
  BOOST_TEST(second->is_first());
}

BOOST_AUTO_TEST_CASE(arrivals_at_one_time_have_different_places) {
  line one;
  const auto first = one.open();
  const auto second = one.open();
  BOOST_TEST(first->take_place());
  BOOST_TEST(second->take_place());
  BOOST_TEST(first->is_first());
  BOOST_TEST(!second->is_first());
}

// Each process that ends its turn goes to the end of the line.
BOOST_AUTO_TEST_CASE(turns_go_round) {
  line one;
  std::vector<std::unique_ptr<turn_file>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(one.open());
    BOOST_REQUIRE(all.back()->take_place());
    one.now += 1us;
  }
  std::array<int, 4> turns{};
  for (int turn = 0; turn < 100; ++turn) {
    std::size_t having = all.size();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i]->is_first()) {
        BOOST_REQUIRE(having == all.size());
        having = i;
      }
    BOOST_REQUIRE(having < all.size());
    ++turns[having];
    one.now += 1us;
    all[having]->leave();
    BOOST_REQUIRE(all[having]->take_place());
  }
  for (const auto count : turns)
    BOOST_TEST(count == 25);
}

BOOST_AUTO_TEST_CASE(a_stopped_process_is_passed_once) {
  line one;
  const auto stopped = one.open();
  const auto other = one.open();
  BOOST_TEST(stopped->take_place());
  one.now += 1us;
  BOOST_TEST(other->enter({}, 0ms));
  BOOST_TEST(other->is_first());
  other->leave();
  one.now += 1us;
  BOOST_TEST(other->take_place());
  BOOST_TEST(other->is_first());
  // It takes part again when it goes on.
  one.now += 1us;
  BOOST_TEST(stopped->take_place());
  BOOST_TEST(!stopped->is_first());
}

BOOST_AUTO_TEST_CASE(a_killed_process_has_no_place) {
  line one;
  std::array<int, 2> pipe{};
  BOOST_REQUIRE(::pipe(pipe.data()) == 0);
  const auto child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    turn_file taken(one.path, [] { return std::chrono::nanoseconds(1); });
    const char told = taken.take_place() ? 'y' : 'n';
    static_cast<void>(::write(pipe[1], &told, 1) == 1);
    for (;;)
      ::pause();
  }
  char told = 0;
  BOOST_TEST(::read(pipe[0], &told, 1) == 1);
  BOOST_TEST(told == 'y');
  const auto other = one.open();
  BOOST_TEST(other->take_place());
  BOOST_TEST(!other->is_first());
  BOOST_TEST(::kill(child, SIGKILL) == 0);
  BOOST_TEST(::waitpid(child, nullptr, 0) == child);
  BOOST_TEST(other->is_first());
  ::close(pipe[0]);
  ::close(pipe[1]);
}

BOOST_AUTO_TEST_CASE(a_removed_file_is_made_again) {
  line one;
  const auto first = one.open();
  const auto second = one.open();
  BOOST_TEST(first->take_place());
  first->leave();
  std::filesystem::remove(one.path);
  BOOST_TEST(second->take_place());
  one.now += 1us;
  BOOST_TEST(first->take_place());
  BOOST_TEST(second->is_first());
  BOOST_TEST(!first->is_first());
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_made_is_no_line) {
  line one;
  one.path = one.folder.path() / "missing" / "s.db-turns";
  BOOST_TEST(!one.open()->enter({}, 0ms));
}

BOOST_AUTO_TEST_CASE(the_file_is_removed_at_the_end) {
  line one;
  auto only = one.open();
  BOOST_TEST(only->enter({}, 0ms));
  BOOST_TEST(std::filesystem::exists(one.path));
  only.reset();
  BOOST_TEST(!std::filesystem::exists(one.path));
}

BOOST_AUTO_TEST_CASE(others_see_which_owners_are_wanted) {
  line one;
  const auto first = one.open();
  const auto second = one.open();
  const std::array wanted{owner_name{"press"}, owner_name{"press", "ann"}};
  const std::array other{owner_name{"press", "bob"}, owner_name{"news"}};
  BOOST_TEST(!second->is_wanted(wanted));
  BOOST_TEST(!std::filesystem::exists(one.path));
  BOOST_TEST(first->enter(wanted, 0ms));
  BOOST_TEST(second->is_wanted(wanted));
  BOOST_TEST(second->is_wanted({&wanted[1], 1}));
  BOOST_TEST(!second->is_wanted(other));
  BOOST_TEST(!first->is_wanted(wanted));
  // One that waits wants them, too.
  one.now += 1us;
  BOOST_TEST(second->enter(other, 0ms));
  BOOST_TEST(first->is_wanted(other));
  first->leave();
  BOOST_TEST(!second->is_wanted(wanted));
}

// The clock of the test moves with each call, and the function ends the wait.
BOOST_AUTO_TEST_CASE(a_wait_calls_a_function) {
  line one;
  const auto first = one.open();
  turn_file second(one.path, [&one] { return one.now += 1ms; });
  BOOST_TEST(first->take_place());
  int calls = 0;
  BOOST_TEST(second.enter({}, 1h, [&] {
    if (++calls == 3)
      first->leave();
  }));
  BOOST_TEST(calls == 3);
  BOOST_TEST(second.is_first());
}

BOOST_AUTO_TEST_CASE(a_wait_has_an_end) {
  line one;
  const auto first = one.open();
  BOOST_TEST(first->take_place());
  turn_file second(one.path, [&one] { return one.now += 100ms; });
  BOOST_TEST(!second.enter({}, 1h));
  BOOST_TEST((one.now < 13s));
  // It has given its place up.
  BOOST_TEST(first->is_first());
  one.now += 1us;
  BOOST_TEST(first->take_place());
  BOOST_TEST(first->is_first());
}

// Each store waits until the other one has given its turn up, and no call of
// that one does it: its timer must.
BOOST_AUTO_TEST_CASE(two_stores_of_a_file_take_turns) {
  const sqlite_file place;
  const auto path = place.file.string() + "-turns";
  std::array stores{place.open(), place.open()};
  std::uint64_t revision = 0;
  for (int round = 0; round < 20; ++round)
    for (const auto& each : stores) {
      each->changed_elsewhere().value();
      const auto found = each->load_scope({"press"}).value();
      BOOST_TEST((found ? found->revision : 0) == revision);
      store_change change;
      change.kind = change_kind::write;
      change.owner = {"press"};
      change.event = make_event("", json::object({{"app:n", round}}));
      change.app_revision = ++revision;
      BOOST_TEST(each->commit(std::array{change}).value().moved.empty());
    }
  BOOST_TEST(std::filesystem::exists(path));
  for (const auto& each : stores)
    each->close().value();
  stores = {};
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_SUITE_END()
