// The allocations of a page of a list depend on its rows, not on the number of
// sessions. This program is separate because it counts all allocations of its
// process.

#include "troupe/runtime/runtime.hpp"
#include "troupe/stores/shared/memory_store.hpp"

#include "../counted_allocations.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <string>

namespace {

using namespace troupe;
using troupe::testing::allocations;

// Names are too long for the strings' own buffers, so each row allocates.
constexpr std::size_t many = 3'000;
constexpr std::size_t shown = 10;
constexpr std::size_t cost_max = many / 4;

session_key key_of(std::size_t number) {
  return {"an_app_with_a_long_name",
          fmt::format("a_user_with_a_long_name_{}", number % 3),
          fmt::format("a_session_with_a_long_name_{}", number)};
}

std::size_t cost_of(const std::function<void()>& act) {
  const auto before = allocations.load();
  act();
  return allocations.load() - before;
}

} // namespace

BOOST_AUTO_TEST_SUITE(cost_of_a_page)

BOOST_AUTO_TEST_CASE(does_not_grow_with_the_sessions_in_memory) {
  auto on = runtime::open().value();
  auto& sessions = on.sessions();
  const auto create = [&sessions](std::size_t number) {
    auto key = key_of(number);
    sessions
      .create({std::move(key.app), std::move(key.user), std::move(key.id)})
      .value();
  };
  for (std::size_t number = 0; number < many; ++number)
    create(number);
  list_request wanted{key_of(0).app, {}, shown};
  // The first call sorts the sessions that have changed.
  wanted.cursor = sessions.list(wanted).value().next_cursor;
  const auto list = [&sessions, &wanted] {
    BOOST_TEST(sessions.list(wanted).value().sessions.size() == shown);
  };
  BOOST_TEST(cost_of(list) < cost_max);
  wanted.user = key_of(0).user;
  BOOST_TEST(cost_of(list) < cost_max);
  create(many);
  BOOST_TEST(cost_of(list) < cost_max);
}

BOOST_AUTO_TEST_CASE(does_not_grow_with_the_sessions_of_a_store_in_memory) {
  const auto kept = make_memory_store();
  for (std::size_t number = 0; number < many; ++number) {
    const auto key = key_of(number);
    event said;
    said.timestamp = timestamp(std::chrono::microseconds(number));
    store_change change;
    change.kind = change_kind::create;
    change.owner = {key.app, key.user, key.id};
    change.event = std::make_shared<const event>(std::move(said));
    change.session_revision = 0;
    BOOST_REQUIRE(kept->commit({&change, 1}).value().moved.empty());
  }
  row_query query{key_of(0).app, {}, shown, {}};
  const auto list = [&kept, &query] {
    BOOST_TEST(kept->list(query).value().size() == shown);
  };
  BOOST_TEST(cost_of(list) < cost_max);
  query.user = key_of(0).user;
  BOOST_TEST(cost_of(list) < cost_max);
  query.behind = row_position{
    timestamp(std::chrono::microseconds(many / 2)), "a_user", "a_session"};
  BOOST_TEST(cost_of(list) < cost_max);
}

BOOST_AUTO_TEST_SUITE_END()
