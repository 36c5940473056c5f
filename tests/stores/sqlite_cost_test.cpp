// The cost of reading a SQLite store, counted in steps of SQLite's virtual
// machine. It depends on the rows that are read, not on the rest of the store.

#include "troupe/stores/sqlite/open.hpp"

#include "temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(sqlite_cost)

namespace {

// Counts the steps of all connections that are opened while it exists.
class step_counter {
public:
  step_counter() { sqlite3_auto_extension(as_extension()); }

  step_counter(const step_counter&) = delete;
  step_counter& operator=(const step_counter&) = delete;

  ~step_counter() { sqlite3_cancel_auto_extension(as_extension()); }

  static std::uint64_t steps_of(const std::function<void()>& act) {
    steps_ = 0;
    act();
    return steps_;
  }

private:
  static int count(void*) {
    ++steps_;
    return 0;
  }

  static int extend(sqlite3* opened, char**, const sqlite3_api_routines*) {
    sqlite3_progress_handler(opened, 1, &count, nullptr);
    return SQLITE_OK;
  }

  static void (*as_extension())() {
    return reinterpret_cast<void (*)()>(&extend);
  }

  static inline std::uint64_t steps_ = 0; // Only one thread reads.
};

store_change
change_of(change_kind kind, const session_key& key, std::uint64_t revision) {
  event said(content("model", {part("said")}));
  said.id = fmt::format("e{}", revision);
  said.author = "agent";
  said.timestamp = timestamp(std::chrono::seconds(1'700'000'000 + revision));
  store_change made;
  made.kind = kind;
  made.owner = {key.app, key.user, key.id};
  made.event = std::make_shared<const event>(std::move(said));
  made.session_revision = revision;
  return made;
}

// A file to which `count` changes were written, and all of them are folded.
class filled_file {
public:
  filled_file(std::size_t count,
              const std::function<store_change(std::size_t)>& change) {
    const auto writing
      = open_sqlite_store(file_, {.durability = durability::none}).value();
    for (std::size_t first = 0; first < count;) {
      std::vector<store_change> batch;
      for (; batch.size() < 4'096 && first < count; ++first)
        batch.push_back(change(first));
      BOOST_TEST_REQUIRE(writing->commit(batch).value().moved.empty());
    }
    BOOST_TEST(writing->close().has_value());
    opened_ = open_sqlite_store(file_).value();
  }

  // Counts the second call only. The first call opens the connection.
  std::uint64_t steps_of(const std::function<void(store&)>& act) const {
    act(*opened_);
    return step_counter::steps_of([&] { act(*opened_); });
  }

private:
  temporary_folder folder_;
  std::filesystem::path file_ = folder_.path() / "s.db";
  std::unique_ptr<store> opened_;
};

constexpr std::size_t few = 1'000;
constexpr std::size_t many = 20'000;

filled_file file_of_sessions(std::size_t count) {
  return {count, [](std::size_t number) {
            auto made = change_of(change_kind::create,
                                  {"press",
                                   fmt::format("user{}", number % 5),
                                   fmt::format("session{}", number)},
                                  0);
            auto created = *made.event;
            created.timestamp
              = timestamp(std::chrono::seconds(1'700'000'000 + number));
            made.event = std::make_shared<const event>(std::move(created));
            return made;
          }};
}

const session_key ann{"press", "ann", "s1"};

filled_file file_of_events(std::size_t count) {
  return {
    count + 1, [](std::size_t number) {
      return change_of(
        number == 0 ? change_kind::create : change_kind::append, ann, number);
    }};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_page_of_a_list_does_not_depend_on_the_other_sessions) {
  const step_counter counting;
  const auto small = file_of_sessions(few);
  const auto large = file_of_sessions(many);
  const row_query first{"press", {}, 100, {}};
  row_query later = first;
  later.behind
    = row_position{timestamp(std::chrono::seconds(1'700'000'000 + few / 2)),
                   "user0",
                   "session500"};
  auto of_user = first;
  of_user.user = "user1";
  auto later_of_user = later;
  later_of_user.user = "user1";
  for (const auto& query : {first, later, of_user, later_of_user}) {
    const auto list = [&query](store& kept) {
      BOOST_TEST(kept.list(query).value().size() == 100U);
    };
    const auto steps = small.steps_of(list);
    BOOST_TEST(steps > 100U);
    BOOST_TEST(large.steps_of(list) <= steps + steps / 10);
  }
}

BOOST_AUTO_TEST_CASE(a_page_by_name_does_not_depend_on_the_other_sessions) {
  const step_counter counting;
  const auto small = file_of_sessions(few);
  const auto large = file_of_sessions(many);
  name_query query{.app = "press"};
  query.limit = 100;
  query.behind = session_key{"press", "user2", "session"};
  const auto list = [&query](store& kept) {
    BOOST_TEST(kept.list_by_name(query).value().size() == 100U);
  };
  const auto steps = small.steps_of(list);
  BOOST_TEST(steps > 100U);
  BOOST_TEST(large.steps_of(list) <= steps + steps / 10);
}

// Ids are indexed in blocks of 65,536 events.
BOOST_AUTO_TEST_CASE(the_cost_of_a_retry_does_not_depend_on_the_other_events) {
  constexpr std::size_t sent = 500;
  const step_counter counting;
  const auto small = file_of_events(2'000);
  const auto large = file_of_events(200'000);
  std::vector<std::string> ids;
  for (std::size_t number = 1; number <= sent; ++number)
    ids.push_back(fmt::format("e{}", number));
  const auto find = [&ids](store& kept) {
    const auto found = kept.find_events(ann, ids).value();
    for (std::size_t index = 0; index < ids.size(); ++index)
      BOOST_TEST_REQUIRE((found[index] && found[index]->id == ids[index]));
  };
  const auto steps = small.steps_of(find);
  BOOST_TEST(steps > sent);
  BOOST_TEST(steps < sent * 100);
  BOOST_TEST(large.steps_of(find) <= steps + steps / 10);
}

BOOST_AUTO_TEST_SUITE_END()
