// The bases of the merged writes of a turn's tools.

#include "troupe/agents/turns/merged_bases.hpp"

#include <boost/test/unit_test.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(bases_of_a_turn)

namespace {

using kind = operation_kind;

tool_call wrote(kind how, json operand, std::vector<write_basis> bases = {}) {
  tool_call done;
  done.recorded.record("n", how, std::move(operand)).value();
  done.bases = std::move(bases);
  return done;
}

write_basis saw(std::optional<value> owned, json seen) {
  return {scope::session, "n", std::move(owned), std::move(seen)};
}

// Returns `n=0` for a basis, and `lost` for a loss.
std::string merged(const std::vector<tool_call>& answered) {
  std::string all;
  for (const auto& each : merge_bases(answered))
    all += (all.empty() ? "" : " ")
           + (each.is_lost ? "lost" : "n=" + to_text(each.owned->data()));
  return all;
}

const value zero = json(0);

} // namespace

BOOST_AUTO_TEST_CASE(a_tool_that_misses_an_earlier_one_overwrites_it) {
  const auto sets = wrote(kind::set, 1, {saw(zero, 0)});
  BOOST_TEST(merged({sets}) == "n=0");
  BOOST_TEST(merged({sets, sets}) == "n=0 lost");
  BOOST_TEST(merged({wrote(kind::set, 1), sets}) == "n=0 lost");
  BOOST_TEST(merged({wrote(kind::add, 1), sets}) == "n=0 lost");
}

BOOST_AUTO_TEST_CASE(a_tool_that_has_seen_an_earlier_one_does_not) {
  BOOST_TEST(merged({wrote(kind::set, 1, {saw(zero, 0)}),
                     wrote(kind::set, 2, {saw({}, 1)})})
             == "n=0");
  BOOST_TEST(merged({wrote(kind::add, 1), wrote(kind::set, 2, {saw(zero, 1)})})
             == "n=0");
  BOOST_TEST(
    merged({wrote(kind::set, 1), wrote(kind::set, 2, {saw({}, 1)})}).empty());
  BOOST_TEST(merged({wrote(kind::set, 1, {saw(zero, 0)}), wrote(kind::set, 2)})
             == "n=0");
}

// Deltas are merged in the order of the calls, whatever the order of the ends.
BOOST_AUTO_TEST_CASE(an_earlier_call_that_ended_later_is_overwritten) {
  BOOST_TEST(merged({wrote(kind::set, 2, {saw({}, 1)}),
                     wrote(kind::set, 1, {saw(zero, 0)})})
             == "n=0 lost");
}

BOOST_AUTO_TEST_SUITE_END()
