// The event log: slices that never change, and the two filters of `get`.

#include "troupe/core/event_log.hpp"

#include "troupe/core/rewind.hpp"

#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(event_logs)

namespace {

template <class T>
concept has_begin = requires(T&& held) {
  std::forward<T>(held).begin();
};

constexpr auto sizes = {0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 5000};

timestamp at(int second) {
  return timestamp(std::chrono::seconds(second));
}

class history {
public:
  void add(int second) {
    event said;
    said.id = std::to_string(count_++);
    said.timestamp = at(second);
    log_.push_back(std::make_shared<const event>(std::move(said)));
  }

  void grow_to(int count) {
    while (count_ < count)
      add(count_);
  }

  event_slice slice() const { return log_.slice(); }

  const event_log& log() const { return log_; }

private:
  event_log log_;
  int count_ = 0;
};

std::vector<int> ids(const event_slice& slice) {
  std::vector<int> seen;
  for (const auto& said : slice)
    seen.push_back(std::stoi(said->id));
  BOOST_REQUIRE_EQUAL(seen.size(), slice.size());
  return seen;
}

std::vector<int> counting(int from, int to) {
  std::vector<int> numbers;
  for (; from < to; ++from)
    numbers.push_back(from);
  return numbers;
}

} // namespace

BOOST_DATA_TEST_CASE(a_slice_is_what_was_there_when_it_was_taken,
                     data::make(sizes),
                     size) {
  history events;
  events.grow_to(size);
  const auto slice = events.slice();
  events.grow_to(3 * size + 70);
  BOOST_TEST(ids(slice) == counting(0, size), boost::test_tools::per_element());
  BOOST_TEST(slice.empty() == (size == 0));
  BOOST_TEST(ids(events.slice()) == counting(0, 3 * size + 70),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(every_slice_on_the_way_stays_as_it_was) {
  history events;
  std::vector<event_slice> slices;
  for (int count = 0; count <= 200; ++count) {
    slices.push_back(events.slice());
    events.add(count);
  }
  for (int count = 0; count <= 200; ++count)
    BOOST_TEST(ids(slices[std::size_t(count)]) == counting(0, count),
               boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(recent_events_are_the_last_ones, data::make(sizes), size) {
  history events;
  events.grow_to(size);
  for (const auto count : sizes)
    BOOST_TEST(ids(events.slice().recent(std::size_t(count)))
                 == counting(std::max(0, size - count), size),
               boost::test_tools::per_element());
  BOOST_TEST(ids(events.slice().recent(SIZE_MAX)) == counting(0, size),
             boost::test_tools::per_element());
  BOOST_TEST(ids(events.slice().recent(40).recent(3))
               == counting(std::max(0, size - 3), size),
             boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(after_is_inclusive, data::make(sizes), size) {
  history events;
  events.grow_to(size);
  for (const int second : {-1, 0, 1, 31, 32, 33, 4999, 5000})
    BOOST_TEST(ids(events.slice().after(at(second)))
                 == counting(std::max(0, second), size),
               boost::test_tools::per_element());
}

BOOST_DATA_TEST_CASE(after_looks_at_each_event_whatever_their_order,
                     data::xrange(30),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  history events;
  std::vector<int> seconds(random.below(150));
  for (auto& second : seconds) {
    second = static_cast<int>(random.below(20));
    events.add(second);
  }
  for (int from = 0; from <= 20; ++from) {
    std::vector<int> expected;
    for (std::size_t index = 0; index < seconds.size(); ++index)
      if (seconds[index] >= from)
        expected.push_back(static_cast<int>(index));
    BOOST_TEST(ids(events.slice().after(at(from))) == expected,
               boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(filters_are_applied_in_the_order_they_are_called) {
  history events;
  for (const int second : {9, 1, 8, 2, 7})
    events.add(second);
  BOOST_TEST(ids(events.slice().recent(3).after(at(7))) == std::vector({2, 4}),
             boost::test_tools::per_element());
  BOOST_TEST(ids(events.slice().after(at(7)).recent(3))
               == std::vector({0, 2, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(ends_and_places_of_a_slice) {
  history events;
  events.grow_to(40);
  const auto slice = events.slice().recent(10);
  BOOST_TEST(slice.front()->id == "30");
  BOOST_TEST(slice.back()->id == "39");
  BOOST_TEST(slice[5]->id == "35");
  BOOST_TEST(events.log().size() == 40U);
  BOOST_TEST(events.log()[39]->id == "39");
  BOOST_TEST(event_slice().empty());
  BOOST_TEST(ids(event_slice().recent(5).after(at(0))).empty());
}

BOOST_AUTO_TEST_CASE(a_slice_gives_one_type_of_event) {
  using slice = const event_slice&;
  using place = event_slice::iterator;
  static_assert(
    std::is_same_v<decltype(std::declval<slice>()[0]), const event_ptr&>);
  static_assert(
    std::is_same_v<decltype(std::declval<slice>().front()), const event_ptr&>);
  static_assert(
    std::is_same_v<decltype(std::declval<slice>().back()), const event_ptr&>);
  static_assert(
    std::is_same_v<decltype(*std::declval<place>()), const event_ptr&>);
  static_assert(std::forward_iterator<place>);
  // Of a temporary they are copies, which keep the event alive.
  static_assert(
    std::is_same_v<decltype(std::declval<event_slice>()[0]), event_ptr>);
  static_assert(
    std::is_same_v<decltype(std::declval<event_slice>().back()), event_ptr>);
  static_assert(!has_begin<event_slice&&>);
  static_assert(has_begin<slice>);
  history events;
  events.grow_to(3);
  BOOST_TEST(events.slice().back()->id == "2");
}

BOOST_AUTO_TEST_CASE(events_are_shared_not_copied) {
  history events;
  events.grow_to(3);
  BOOST_TEST(events.slice()[1].get() == events.log()[1].get());
}

BOOST_AUTO_TEST_CASE(a_slice_outlives_its_log) {
  event_slice kept;
  {
    history events;
    events.grow_to(100);
    kept = events.slice().recent(60);
  }
  BOOST_TEST(ids(kept) == counting(40, 100), boost::test_tools::per_element());
}

// For ThreadSanitizer: the owner appends while readers use earlier slices.
BOOST_AUTO_TEST_CASE(slices_are_read_while_the_owner_appends) {
  history events;
  events.grow_to(20);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> readers;
  for (int step = 0; step < 3; ++step) {
    events.grow_to(20 + step * 13);
    readers.emplace_back([slice = events.slice(), &wrong] {
      for (int round = 0; round < 300; ++round)
        for (std::size_t index = 0; index < slice.size(); ++index)
          wrong += slice[index]->id != std::to_string(index) ? 1 : 0;
    });
  }
  events.grow_to(3000);
  for (auto& reader : readers)
    reader.join();
  BOOST_TEST(wrong == 0);
}

// -- branches ----

namespace {

const std::vector<std::string> branches
  = {"", "", "a", "a.b", "a.bc", "a.b.c", "b", "a.b.c.d"};

event_ptr on_branch(const std::string& branch) {
  event said;
  said.branch = branch;
  return std::make_shared<const event>(std::move(said));
}

bool shows(const std::string& branch, const std::string& viewer) {
  return branch.empty() || viewer.empty() || branch == viewer
         || viewer.starts_with(branch + ".");
}

std::vector<std::size_t> places_of(const event_slice& slice,
                                   const std::string& viewer) {
  std::vector<std::size_t> shown;
  for (std::size_t index = 0; index < slice.size(); ++index)
    if (shows(slice[index]->branch, viewer))
      shown.push_back(index);
  return shown;
}

// Returns the places that the slice shows to the viewer, as an explicit list.
std::vector<std::size_t> told_by(const event_slice& slice,
                                 const std::string& viewer) {
  if (auto shown = slice.shown_on(viewer))
    return *shown;
  std::vector<std::size_t> all(slice.size());
  for (std::size_t index = 0; index < all.size(); ++index)
    all[index] = index;
  return all;
}

} // namespace

BOOST_DATA_TEST_CASE(a_slice_knows_what_shows_on_a_branch,
                     data::make({1, 2, 3, 4, 5}),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  event_log log;
  std::vector<event_slice> slices;
  // The first events have no branch, as in most sessions.
  const auto plain = random.below(70);
  for (std::size_t count = 0; count < 300; ++count) {
    log.push_back(on_branch(count < plain ? "" : random.pick(branches)));
    if (random.one_in(20))
      slices.push_back(log.slice());
    if (random.one_in(40))
      slices.push_back(log.slice().recent(random.below(100)));
    if (random.one_in(60))
      log.keep_newest(random.below(80));
  }
  slices.push_back(log.slice());
  // An older slice does not see events added or removed later.
  for (const auto& slice : slices)
    for (const auto& viewer : branches)
      BOOST_TEST((told_by(slice, viewer) == places_of(slice, viewer)));
}

BOOST_AUTO_TEST_CASE(a_history_without_branches_keeps_no_index) {
  event_log log;
  for (int count = 0; count < 100; ++count)
    log.push_back(on_branch(""));
  BOOST_TEST(!log.slice().shown_on("a").has_value());
  log.push_back(on_branch("a"));
  BOOST_TEST(log.slice().shown_on("b")->size() == 100U);
  BOOST_TEST(!log.slice().shown_on("").has_value());
}

BOOST_AUTO_TEST_CASE(slices_are_read_while_branches_are_added) {
  event_log log;
  log.push_back(on_branch("a"));
  std::atomic<bool> done = false;
  const auto slice = log.slice();
  std::thread reader([&] {
    while (!done)
      if (slice.shown_on("a.b")->size() != 1)
        done = true;
  });
  for (int count = 0; count < 20'000; ++count)
    log.push_back(on_branch(branches[static_cast<std::size_t>(count) % 8]));
  const bool failed = done.exchange(true);
  reader.join();
  BOOST_TEST(!failed);
}

// -- rewinds ----

namespace {

event_ptr taking_back(std::uint64_t count) {
  event said;
  take_back(said, count);
  return std::make_shared<const event>(std::move(said));
}

// The numbers of the events that are left, by a walk back as ADK does it.
std::vector<std::uint64_t> walked_back(const std::vector<event_ptr>& log,
                                       std::size_t newest) {
  std::vector<std::uint64_t> left;
  for (auto number = newest; number > 0;) {
    if (const auto count = taken_back_by(*log[number - 1])) {
      number -= std::min<std::size_t>(*count + 1, number);
    } else {
      left.push_back(number);
      --number;
    }
  }
  std::ranges::reverse(left);
  return left;
}

std::vector<std::uint64_t> numbers_of(const event_slice& slice) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t index = 0; index < slice.size(); ++index)
    numbers.push_back(slice.number(index));
  return numbers;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_live_slice_leaves_out_what_was_taken_back) {
  event_log log;
  for (int count = 0; count < 3; ++count)
    log.push_back(on_branch(""));
  log.push_back(taking_back(2));
  log.push_back(on_branch(""));
  const auto live = log.slice().live();
  BOOST_TEST(numbers_of(live) == std::vector<std::uint64_t>({1, 5}),
             boost::test_tools::per_element());
  BOOST_TEST(log.slice().size() == 5U);
  BOOST_TEST(live.span() == 5U);
  BOOST_TEST((live.back() == log[4]));
  // A rewind of the rewind: the events count again.
  log.push_back(taking_back(2));
  BOOST_TEST(numbers_of(log.slice().live())
               == std::vector<std::uint64_t>({1, 2, 3}),
             boost::test_tools::per_element());
  // An older slice does not see it.
  BOOST_TEST(numbers_of(live) == std::vector<std::uint64_t>({1, 5}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_history_without_rewinds_is_all_live) {
  history events;
  events.grow_to(40);
  const auto live = events.slice().live();
  BOOST_TEST(live.size() == 40U);
  BOOST_TEST(live.number(39) == 40U);
  BOOST_TEST(live.first_number() == 1U);
  BOOST_TEST(live.count_back(40, 10) == 30U);
  BOOST_TEST(live.count_back(40, 100) == 1U);
}

BOOST_DATA_TEST_CASE(live_events_are_those_of_a_walk_back,
                     data::make({1, 2, 3, 4, 5, 6}),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  event_log log;
  std::vector<event_ptr> all;
  for (std::size_t count = 0; count < 400; ++count) {
    const auto branch = random.pick(branches);
    // Also more events than there are.
    all.push_back(random.one_in(9) ? taking_back(random.below(count + 2))
                                   : on_branch(branch));
    log.push_back(all.back());
    if (random.one_in(90))
      log.keep_newest(random.below(200));
    const auto slice = log.slice();
    const auto live = slice.live();
    auto expected = walked_back(all, all.size());
    const auto left_out = std::erase_if(
      expected, [&](std::uint64_t number) { return number <= log.before(); });
    BOOST_TEST(numbers_of(live) == expected, boost::test_tools::per_element());
    for (std::size_t index = 0; index < live.size(); ++index)
      BOOST_TEST((live[index] == all[live.number(index) - 1]));
    if (!random.one_in(10))
      continue;
    for (const auto& viewer : branches)
      BOOST_TEST((told_by(live, viewer) == places_of(live, viewer)));
    const auto some = random.below(live.size() + 1);
    BOOST_TEST(numbers_of(live.recent(some))
                 == std::vector<std::uint64_t>(
                   expected.end() - static_cast<int>(some), expected.end()),
               boost::test_tools::per_element());
    BOOST_TEST(numbers_of(live.part(0, some))
                 == std::vector<std::uint64_t>(
                   expected.begin(), expected.begin() + static_cast<int>(some)),
               boost::test_tools::per_element());
    // As it was at an earlier event.
    const auto earlier = log.before() + random.below(slice.size() + 1);
    auto then = walked_back(all, earlier);
    std::erase_if(then,
                  [&](std::uint64_t number) { return number <= log.before(); });
    BOOST_TEST(numbers_of(slice.before(earlier + 1).live()) == then,
               boost::test_tools::per_element());
    if (left_out == 0 && some < expected.size())
      BOOST_TEST(live.count_back(log.before() + slice.size() + 1, some + 1)
                 == expected[expected.size() - some - 1]);
  }
}

BOOST_AUTO_TEST_CASE(a_slice_tells_where_older_events_end) {
  event_log log(10);
  log.push_back(on_branch(""));
  log.push_back(taking_back(4));
  log.push_back(on_branch(""));
  const auto live = log.slice().live();
  BOOST_TEST(numbers_of(live) == std::vector<std::uint64_t>({13}),
             boost::test_tools::per_element());
  BOOST_TEST(log.slice().first_number() == 11U);
  BOOST_TEST(live.first_number() == 8U); // Events 8 to 12 are hidden.
  BOOST_TEST(live.from(13).first_number() == 13U);
  BOOST_TEST(live.count_back(14, 1) == 13U);
  BOOST_TEST(live.count_back(14, 2) == 7U);
  BOOST_TEST(live.hides(8));
  BOOST_TEST(!live.hides(7));
}

BOOST_AUTO_TEST_CASE(a_filter_by_time_and_live_events_agree) {
  event_log log;
  for (const auto second : {1, 9, 2, 8}) {
    event said;
    said.timestamp = at(second);
    log.push_back(std::make_shared<const event>(std::move(said)));
  }
  event marker;
  marker.timestamp = at(20);
  take_back(marker, 1);
  log.push_back(std::make_shared<const event>(std::move(marker)));
  const std::vector<std::uint64_t> left{2};
  BOOST_TEST(numbers_of(log.slice().after(at(5)).live()) == left,
             boost::test_tools::per_element());
  BOOST_TEST(numbers_of(log.slice().live().after(at(5))) == left,
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(many_rewinds_are_read_in_linear_time) {
  event_log log;
  for (int count = 0; count < 1'000; ++count) {
    log.push_back(on_branch(""));
    log.push_back(on_branch(""));
    log.push_back(taking_back(1));
  }
  const auto live = log.slice().live();
  BOOST_TEST(live.size() == 1'000U);
  BOOST_TEST(live.number(999) == 2'998U);
}

// -- logs that begin with the events of another one ----

// A chain of forks, each with events of its own behind it; on branches or not.
BOOST_DATA_TEST_CASE(a_log_goes_on_from_the_events_of_another,
                     data::make({0, 1, 31, 32, 33, 64, 2'100, 5'000})
                       * data::make({1, 12}) * data::make({false, true}),
                     shared,
                     levels,
                     with_branches) {
  random_source random(static_cast<std::uint64_t>(shared + levels));
  const auto add_some = [&](event_log& log, int count) {
    for (; count > 0; --count)
      log.push_back(on_branch(with_branches ? random.pick(branches) : ""));
  };
  std::vector<event_log> logs(1);
  add_some(logs.back(), shared + 70);
  auto count = static_cast<std::size_t>(shared);
  for (int level = 0; level < levels; ++level) {
    const auto past = logs.back().slice().part(0, count);
    std::vector<event_ptr> expected(past.begin(), past.end());
    event_log fork(past);
    BOOST_TEST(fork.size() == count);
    add_some(fork, 45);
    add_some(logs.back(), 45);
    const auto slice = fork.slice();
    BOOST_TEST(slice.size() == count + 45);
    for (std::size_t index = 0; index < count; ++index)
      BOOST_TEST_REQUIRE(slice[index] == expected[index]);
    for (const auto& viewer : branches) {
      const auto part = slice.part(count / 2, count + 20);
      BOOST_TEST((told_by(part, viewer) == places_of(part, viewer)));
    }
    logs.push_back(std::move(fork));
    count += 40;
  }
  logs.erase(logs.begin(), logs.end() - 1);
  for (const auto& said : logs.back().slice().recent(2'000))
    BOOST_TEST_REQUIRE(said);
}

BOOST_AUTO_TEST_CASE(newest_events_are_kept_of_a_log_with_a_past) {
  event_log parent;
  for (int count = 0; count < 5'000; ++count)
    parent.push_back(on_branch(""));
  event_log fork(parent.slice());
  for (int count = 0; count < 100; ++count)
    fork.push_back(on_branch(""));
  const auto before = fork.slice();
  const auto dropped = fork.keep_newest(500);
  BOOST_TEST(dropped > 4'500U);
  for (std::size_t index = 0; index < fork.size(); ++index)
    BOOST_TEST_REQUIRE(fork[index] == before[dropped + index]);
}

// A rewind of the parent behind the beginning of a fork is none of the fork.
BOOST_AUTO_TEST_CASE(a_fork_has_the_rewinds_of_its_past_alone) {
  event_log parent;
  const auto add = [](event_log& log, int count) {
    for (; count > 0; --count)
      log.push_back(on_branch(""));
  };
  add(parent, 50);
  parent.push_back(taking_back(10)); // Number 51; hides 41 to 51.
  add(parent, 50);
  parent.push_back(taking_back(60));
  event_log fork(parent.slice().part(0, 80));
  BOOST_TEST(fork.slice().live().size() == 69U);
  fork.push_back(taking_back(20)); // Hides 61 to 81.
  add(fork, 3);
  BOOST_TEST(fork.slice().live().size() == 52U);
  BOOST_TEST(fork.slice().live().number(51) == 84U);
  BOOST_TEST(parent.slice().live().size() == 41U); // As after event 41.
  const event_log early(parent.slice().part(0, 45));
  BOOST_TEST(early.slice().live().size() == 45U);
}

BOOST_AUTO_TEST_SUITE_END()
