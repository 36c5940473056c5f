// The keys of one scope, compared with `std::map` under random edits.

#include "troupe/core/state_map.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(state_maps)

namespace {

using plain_map = std::map<std::string, json>;

plain_map contents(const state_map& map) {
  plain_map seen;
  map.for_each([&seen](std::string_view name, const value& held) {
    const bool first = seen.emplace(name, held.data()).second;
    BOOST_REQUIRE(first);
  });
  BOOST_REQUIRE_EQUAL(seen.size(), map.size());
  return seen;
}

// Checks the map by visiting all keys and by finding each.
bool holds(const state_map& map, const plain_map& expected) {
  return contents(map) == expected
         && std::ranges::all_of(expected, [&map](const auto& entry) {
              const auto* found = map.find(entry.first);
              return found != nullptr && found->data() == entry.second;
            });
}

state_map filled(int count) {
  state_map map;
  for (int index = 0; index < count; ++index)
    map.set("key " + std::to_string(index), json(index));
  return map;
}

} // namespace

// The number of names bounds the size: the flat form, around the change of
// form, and far beyond it.
BOOST_DATA_TEST_CASE(any_sequence_of_edits_agrees_with_a_plain_map,
                     data::xrange(12) * data::make({8, 40, 70, 4000}),
                     seed,
                     names) {
  random_source random(static_cast<std::uint64_t>(seed));
  state_map map;
  plain_map plain;
  std::vector<std::pair<state_map, plain_map>> snapshots;
  const int steps = names > 1000 ? 12'000 : 1500;
  // Erasing is rare at first and frequent later, so that the map grows and then
  // shrinks.
  for (int step = 0; step < steps; ++step) {
    const auto name = "k" + std::to_string(random.below(std::size_t(names)));
    if (random.one_in(step < steps / 2 ? 10 : 2)) {
      BOOST_REQUIRE_EQUAL(map.erase(name), plain.erase(name) == 1);
    } else {
      const auto fresh = random.data(1);
      map.set(name, fresh);
      plain[name] = fresh;
    }
    BOOST_REQUIRE_EQUAL(map.size(), plain.size());
    if (snapshots.size() < 8 && random.one_in(std::size_t(steps) / 8))
      snapshots.emplace_back(map, plain);
  }
  BOOST_TEST(holds(map, plain));
  for (const auto& [snapshot, then] : snapshots)
    BOOST_TEST(holds(snapshot, then));
}

BOOST_DATA_TEST_CASE(a_map_can_be_emptied_and_used_again,
                     data::make({1, 31, 32, 33, 64, 3000}),
                     count) {
  auto map = filled(count);
  const auto full = map;
  for (int index = 0; index < count; ++index) {
    BOOST_REQUIRE(map.erase("key " + std::to_string(index)));
    BOOST_REQUIRE(!map.erase("key " + std::to_string(index)));
  }
  BOOST_TEST(map.size() == 0U);
  BOOST_TEST(holds(map, {}));
  BOOST_TEST((map == state_map()));
  BOOST_TEST((full == filled(count)));
  map.set("again", json(1));
  BOOST_TEST(holds(map, {{"again", 1}}));
}

BOOST_AUTO_TEST_CASE(maps_are_equal_by_content_whatever_their_history) {
  auto grown = filled(50);
  for (int index = 20; index < 50; ++index)
    grown.erase("key " + std::to_string(index));
  BOOST_TEST((grown == filled(20)));
  grown.set("key 3", json("other"));
  BOOST_TEST((grown != filled(20)));
  grown.erase("key 3");
  grown.set("key x", json(3));
  BOOST_TEST((grown != filled(20)));
}

BOOST_AUTO_TEST_CASE(two_copies_go_their_own_ways) {
  const auto origin = filled(100);
  auto left = origin;
  auto right = origin;
  left.set("key 1", json("left"));
  right.erase("key 1");
  right.set("new", json("right"));
  BOOST_TEST(text_of(left.find("key 1")) == "\"left\"");
  BOOST_TEST(text_of(left.find("new")) == "absent");
  BOOST_TEST(text_of(right.find("key 1")) == "absent");
  BOOST_TEST(text_of(right.find("new")) == "\"right\"");
  BOOST_TEST((origin == filled(100)));
}

BOOST_AUTO_TEST_CASE(a_map_that_was_moved_from_is_empty) {
  auto source = filled(40);
  const auto target = std::move(source);
  // NOLINTNEXTLINE(bugprone-use-after-move): the moved-from map must be empty.
  BOOST_TEST(source.size() == 0U);
  BOOST_TEST(holds(source, {}));
  BOOST_TEST(target.size() == 40U);
}

BOOST_AUTO_TEST_CASE(a_value_may_be_set_from_the_map_itself) {
  auto map = filled(40);
  map.set("copy", *map.find("key 7"));
  map.set("key 7", *map.find("key 8"));
  BOOST_TEST(text_of(map.find("copy")) == "7");
  BOOST_TEST(text_of(map.find("key 7")) == "8");
}

// For AddressSanitizer and ThreadSanitizer: edits in place while readers use
// older copies.
BOOST_AUTO_TEST_CASE(snapshots_are_read_while_the_original_is_edited) {
  auto map = filled(500);
  const auto expected = contents(map);
  std::vector<std::thread> readers;
  std::vector<int> wrong(3, 0);
  for (auto& count : wrong)
    readers.emplace_back([snapshot = map, &expected, &count] {
      for (int round = 0; round < 50; ++round)
        for (const auto& [name, held] : expected) {
          const auto* found = snapshot.find(name);
          count += found == nullptr || found->data() != held ? 1 : 0;
        }
    });
  for (int round = 0; round < 20; ++round)
    for (int index = 0; index < 500; ++index)
      map.set("key " + std::to_string(index), json(-round));
  for (auto& reader : readers)
    reader.join();
  for (const auto count : wrong)
    BOOST_TEST(count == 0);
}

BOOST_AUTO_TEST_SUITE_END()
