#include "troupe/core/session_diff.hpp"

#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(session_diffs)

namespace {

session made(const json& keys, const std::vector<std::string>& ids) {
  state_map map;
  for (const auto& [name, data] : keys.items())
    map.set(name, value(data));
  event_log log;
  for (const auto& id : ids) {
    event said;
    said.id = id;
    log.push_back(std::make_shared<const event>(std::move(said)));
  }
  return {{"press", "ann", "s"},
          readonly_state({std::move(map), {}, {}, {}}),
          log.slice(),
          {},
          ids.size()};
}

} // namespace

BOOST_AUTO_TEST_CASE(keys_and_events_that_differ_are_found) {
  const auto found
    = diff(made({{"same", 1}, {"other", 1}, {"gone", 1}}, {"a", "b", "c"}),
           made({{"same", 1}, {"other", 2}, {"new", 1}}, {"a", "d"}));
  BOOST_REQUIRE(found.keys.size() == 3U);
  BOOST_TEST(found.keys[0].key == "gone");
  BOOST_TEST(!found.keys[0].after);
  BOOST_TEST(found.keys[1].key == "new");
  BOOST_TEST(!found.keys[1].before);
  BOOST_TEST(*found.keys[2].before == json(1));
  BOOST_TEST(*found.keys[2].after == json(2));
  BOOST_TEST(found.before.size() == 2U);
  BOOST_TEST(found.after.size() == 1U);
  BOOST_TEST(found.after.front()->id == "d");
}

BOOST_AUTO_TEST_CASE(equal_sessions_do_not_differ) {
  const auto one = made({{"n", 1}}, {"a", "b"});
  const auto found = diff(one, one);
  BOOST_TEST(found.keys.empty());
  BOOST_TEST(found.before.empty());
  BOOST_TEST(found.after.empty());
  BOOST_TEST(diff(made({}, {}), made({}, {"a"})).after.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
