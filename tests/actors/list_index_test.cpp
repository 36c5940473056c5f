// The order of an app's sessions, compared with a plain list.

#include "troupe/actors/sessions/list_index.hpp"

#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

using namespace troupe;
using namespace troupe::actors;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(list_indexes)

namespace {

constexpr std::size_t all = SIZE_MAX;

timestamp at(std::int64_t microseconds) {
  return timestamp(std::chrono::microseconds(microseconds));
}

std::string shown(const page_start& place) {
  return fmt::format(
    "{} {}/{}", place.time.time_since_epoch().count(), place.user, place.id);
}

std::vector<std::string> shown(const std::vector<page_start>& places) {
  std::vector<std::string> texts;
  for (const auto& each : places)
    texts.push_back(shown(each));
  return texts;
}

bool is_anybody(const std::string&) {
  return true;
}

auto rank_of(const page_start& place) {
  return std::tuple(~place.time.time_since_epoch().count(),
                    std::tie(place.user, place.id));
}

/// A session of the test, with its place.
struct listed {
  listed(const std::shared_ptr<list_index>& index,
         std::string of_user,
         std::string with_id)
    : place{timestamp(), std::move(of_user), std::move(with_id)},
      entry(std::make_shared<const user_names>(
              user_names{"press", place.user, index}),
            place.id) {}

  page_start place;
  listing entry;
};

class many_sessions {
public:
  void add(const std::string& user, std::int64_t time) {
    touch(*sessions_.emplace_back(std::make_unique<listed>(
            index_, user, fmt::format("s{}", ++made_))),
          time);
  }

  void touch(std::size_t which, std::int64_t time) {
    touch(*sessions_[which], time);
  }

  void remove(std::size_t which) {
    sessions_.erase(sessions_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  std::size_t size() const noexcept { return sessions_.size(); }

  void check_page(const std::optional<std::string>& user,
                  const std::optional<page_start>& from,
                  std::size_t count) {
    std::vector<page_start> expected;
    for (const auto& each : sessions_)
      if ((!user || each->place.user == *user)
          && (!from || rank_of(*from) < rank_of(each->place)))
        expected.push_back(each->place);
    std::ranges::sort(expected, [](const auto& left, const auto& right) {
      return rank_of(left) < rank_of(right);
    });
    if (expected.size() > count)
      expected.resize(count);
    const auto found = index_->page(user, from, count, is_anybody);
    BOOST_TEST(shown(found) == shown(expected),
               boost::test_tools::per_element());
  }

  page_start place(std::size_t which) const { return sessions_[which]->place; }

private:
  static void touch(listed& session, std::int64_t time) {
    session.place.time = at(time);
    session.entry.touch(at(time));
  }

  const std::shared_ptr<list_index> index_ = std::make_shared<list_index>();
  std::vector<std::unique_ptr<listed>> sessions_;
  int made_ = 0;
};

} // namespace

BOOST_DATA_TEST_CASE(show_what_a_plain_list_shows,
                     data::make({1, 2, 3, 4, 5}),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  many_sessions sessions;
  for (int step = 0; step < 2'000; ++step) {
    const auto which = sessions.size() == 0 ? 0 : random.below(sessions.size());
    const auto time = static_cast<std::int64_t>(random.below(50)) - 10;
    const auto user = fmt::format("u{}", random.below(3));
    switch (random.below(8)) {
    case 0:
    case 1:
      sessions.add(user, time);
      break;
    case 2:
    case 3:
    case 4:
      if (sessions.size() > 0)
        sessions.touch(which, time);
      break;
    case 5:
      if (sessions.size() > 0)
        sessions.remove(which);
      break;
    case 6:
      sessions.check_page({}, {}, random.below(10));
      sessions.check_page(user, {}, all);
      break;
    default:
      sessions.check_page({}, page_start{at(time), user, "s5"}, 5);
      if (sessions.size() > 0)
        sessions.check_page(user, sessions.place(which), 5);
    }
  }
  sessions.check_page({}, {}, all);
}

BOOST_AUTO_TEST_CASE(leave_out_users_that_are_not_shown) {
  const auto index = std::make_shared<list_index>();
  listed ann(index, "ann", "s");
  listed ben(index, "ben", "s");
  ann.entry.touch(at(2));
  ben.entry.touch(at(1));
  const auto page = index->page(
    {}, {}, 1, [](const std::string& user) { return user != "ann"; });
  BOOST_TEST(shown(page) == std::vector<std::string>{"1 ben/s"},
             boost::test_tools::per_element());
}

// Every finished change shows in each later page.
BOOST_AUTO_TEST_CASE(show_changes_of_other_threads) {
  constexpr std::int64_t times = 320'000;
  const auto index = std::make_shared<list_index>();
  std::vector<std::unique_ptr<listed>> sessions;
  for (const auto* id : {"a", "b", "c"})
    sessions.push_back(std::make_unique<listed>(index, "ann", id));
  std::atomic<std::size_t> working{sessions.size()};
  std::atomic<bool> missed{false};
  std::vector<std::thread> threads;
  for (auto& each : sessions)
    threads.emplace_back([&index, &each, &working, &missed] {
      for (std::int64_t time = 1; time <= times; ++time) {
        each->entry.touch(at(time));
        if (time % 16 != 0)
          continue; // Lets changes meet pages of other threads.
        const auto page = index->page({}, {}, all, is_anybody);
        const auto own = std::ranges::find(
          page, each->place.id, [](const page_start& it) { return it.id; });
        if (own == page.end() || own->time != at(time))
          missed = true;
      }
      --working;
    });
  threads.emplace_back([&index, &working] {
    while (working > 0)
      static_cast<void>(index->page({}, {}, 1, is_anybody));
  });
  for (auto& each : threads)
    each.join();
  BOOST_TEST(!missed);
  const auto last = index->page({}, {}, all, is_anybody);
  BOOST_TEST(last.size() == sessions.size());
  for (const auto& each : last)
    BOOST_TEST((each.time == at(times)));
}

BOOST_AUTO_TEST_SUITE_END()
