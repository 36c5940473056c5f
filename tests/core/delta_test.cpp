// Deltas: recording, splitting by scope, and the wire form.

#include "troupe/core/delta.hpp"

#include "troupe/core/support/scope_state.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <limits>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

using kind = operation_kind;

delta from_text(std::string_view text) {
  return delta::from_json(parse_json(text).value()).value();
}

// One owner's share as text: `name kind operand; …`.
std::string share_of(const delta& changed, scope where) {
  std::string shown;
  for (const auto& done : changed.share(where)) {
    shown += shown.empty() ? "" : "; ";
    shown += done.name + ' ' + std::string(to_string(done.kind)) + ' '
             + to_text(done.operand.data());
  }
  return shown;
}

result<void> record_text(delta& target, std::string_view operations) {
  return record_operations(target, parse_json(operations).value());
}

const std::vector<std::string> refused_operations = {
  R"({})",
  R"("add")",
  R"([1])",
  R"(["add"])",
  R"([{}])",
  R"([{"op": "add"}])",
  R"([{"key": "n", "value": 1}])",
  R"([{"op": 1, "key": "n", "value": 1}])",
  R"([{"op": "add", "key": 1, "value": 1}])",
  R"([{"op": "set", "key": "n", "value": 1}])",
  R"([{"op": "ADD", "key": "n", "value": 1}])",
  R"([{"op": "increment", "key": "n", "value": 1}])",
  R"([{"op": "add", "key": "n"}])",
  R"([{"op": "append", "key": "n"}])",
  R"([{"op": "add", "key": "n", "value": "1"}])",
  R"([{"op": "add", "key": "n", "value": null}])",
  R"([{"op": "min", "key": "n", "value": true}])",
  R"([{"op": "max", "key": "n", "value": [1]}])",
  R"([{"op": "union", "key": "n", "value": 1}])",
  R"([{"op": "union", "key": "n", "value": {"a": 1}}])",
  R"([{"op": "merge", "key": "n", "value": [1]}])",
  R"([{"op": "cas", "key": "n", "value": 1}])",
  R"([{"op": "cas", "key": "n", "expected": 1}])",
  R"([{"op": "add", "key": "", "value": 1}])",
  R"([{"op": "add", "key": "app:", "value": 1}])",
  R"([{"op": "add", "key": "user:__n", "value": 1}])",
  R"([{"op": "add", "key": "n", "value": 1, "by": 2}])",
  R"([{"op": "add", "key": "n", "value": 1}, {"op": "add", "key": "n"}])",
};

} // namespace

BOOST_AUTO_TEST_SUITE(deltas)

BOOST_AUTO_TEST_CASE(each_owner_gets_its_share_without_prefixes) {
  const auto changed = from_text(
    R"({"topic": "owls", "app:n": 1, "user:name": "ann", "temp:x": [], "user:a": 2})");
  BOOST_TEST(share_of(changed, scope::session) == R"(topic set "owls")");
  BOOST_TEST(share_of(changed, scope::user) == R"(a set 2; name set "ann")");
  BOOST_TEST(share_of(changed, scope::app) == "n set 1");
  BOOST_TEST(share_of(changed, scope::temp) == "x set []");
  BOOST_TEST(changed.operations().size() == 5U);
}

BOOST_AUTO_TEST_CASE(a_null_erases_in_every_scope) {
  const auto changed = from_text(
    R"({"a": null, "app:a": null, "user:a": null, "temp:a": null})");
  for (const auto& done : changed.operations())
    BOOST_TEST(to_string(done.kind) == "erase");
  delta recorded;
  BOOST_TEST(code_of(recorded.record("a", kind::set, json())) == "ok");
  BOOST_TEST(share_of(recorded, scope::session) == "a erase null");
}

BOOST_AUTO_TEST_CASE(only_an_object_with_good_keys_is_a_state_delta) {
  for (const auto* text : {"[]",
                           "null",
                           "1",
                           R"({"": 1})",
                           R"({"app:": 1})",
                           R"({"good": 1, "__bad": 2})"})
    BOOST_TEST(code_of(delta::from_json(parse_json(text).value()))
               == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_place_of_an_artifact_has_one_form) {
  const auto read = [](const json& place) {
    return code_of(delta::from_json({{"__artifact/a", place}}));
  };
  for (const auto& good : {json{{"version", 0}, {"setAside", 3}},
                           json{{"version", nullptr}, {"setAside", 0}},
                           json()})
    BOOST_TEST(read(good) == "ok");
  for (const auto& bad : {json(3),
                          json{{"version", 1}},
                          json{{"version", -1}, {"setAside", 3}},
                          json{{"version", 1}, {"setAside", nullptr}},
                          json{{"version", 1.5}, {"setAside", 3}},
                          json{{"version", 1}, {"setAside", 3}, {"x", 1}}})
    BOOST_TEST(read(bad) == "invalid_argument");
  delta counted;
  BOOST_TEST(
    code_of(counted.record("__artifact/a", operation_kind::add, value(1)))
    == "invalid_argument");
}

BOOST_DATA_TEST_CASE(plain_deltas_come_back_from_json, data::xrange(20), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  constexpr std::array prefixes = {"", "app:", "user:", "temp:"};
  auto before = json::object();
  for (auto left = random.below(40); left > 0; --left)
    before[random.pick(prefixes) + ("k" + std::to_string(random.below(20)))]
      = random.data(2);
  const auto changed = delta::from_json(before).value();
  BOOST_TEST(to_text(changed.to_json()) == to_text(before));
  BOOST_TEST((delta::from_json(changed.to_json()).value() == changed));
  BOOST_TEST(!changed.has_typed());
  BOOST_TEST(changed.empty() == before.empty());
}

BOOST_AUTO_TEST_CASE(a_set_or_erase_replaces_what_its_key_had) {
  delta changed;
  for (const auto* key : {"n", "other", "app:n"})
    BOOST_REQUIRE(code_of(changed.record(key, kind::add, json(1))) == "ok");
  changed.record("n", kind::add, json(2)).value();
  changed.record("n", kind::set, json(7)).value();
  BOOST_TEST(share_of(changed, scope::session) == "other add 1; n set 7");
  changed.record("n", kind::erase).value();
  BOOST_TEST(share_of(changed, scope::session) == "other add 1; n erase null");
  BOOST_TEST(share_of(changed, scope::app) == "n add 1");
}

BOOST_AUTO_TEST_CASE(an_erase_erases_whatever_came_with_it) {
  delta changes;
  changes.record("k", operation_kind::erase, json("left over")).value();
  BOOST_TEST(changes.to_json() == json({{"k", nullptr}}));
}

// The stored form has an expected value only for compare-and-set. Kept
// elsewhere, it would make a delta differ from its stored form.
BOOST_AUTO_TEST_CASE(only_a_comparison_keeps_what_it_expects) {
  for (const auto what : {kind::set, kind::add, kind::max}) {
    delta given;
    given.record("k", what, json(1), json(2)).value();
    delta plain;
    plain.record("k", what, json(1)).value();
    BOOST_TEST((given == plain), to_string(what));
  }
  delta compared;
  compared.record("k", kind::compare_and_set, json(1), json(2)).value();
  BOOST_TEST(compared.operations().front().expected.data() == json(2));
}

BOOST_AUTO_TEST_CASE(typed_operations_queue_up_behind_a_set) {
  delta changed;
  changed.record("n", kind::set, json(1)).value();
  changed.record("n", kind::add, json(2)).value();
  changed.record("n", kind::max, json(9)).value();
  BOOST_TEST(share_of(changed, scope::session) == "n set 1; n add 2; n max 9");
  BOOST_TEST(changed.has_typed());
  BOOST_TEST(to_string(changed.find_last(scope::session, "n")->kind) == "max");
  BOOST_TEST((changed.find_last(scope::app, "n") == nullptr));
  BOOST_TEST((changed.find_last(scope::session, "m") == nullptr));
}

BOOST_AUTO_TEST_CASE(an_operand_that_can_never_fit_is_refused_at_once) {
  delta changed;
  changed.record("n", kind::add, json(1)).value();
  const auto before = changed;
  const std::vector<std::pair<kind, json>> bad = {{kind::add, "1"},
                                                  {kind::add, nullptr},
                                                  {kind::min, true},
                                                  {kind::max, json::array()},
                                                  {kind::add_to_set, 1},
                                                  {kind::merge, json::array()}};
  for (const auto& [what, operand] : bad)
    BOOST_TEST(code_of(changed.record("n", what, operand))
               == "invalid_argument");
  BOOST_TEST(code_of(changed.record("app:__n", kind::set, json(1)))
             == "invalid_argument");
  BOOST_TEST((changed == before));
}

BOOST_AUTO_TEST_CASE(one_owners_share_can_be_dropped) {
  auto changed = from_text(R"({"a": 1, "app:a": 2, "temp:a": 3, "temp:b": 4})");
  changed.drop(scope::temp);
  BOOST_TEST(to_text(changed.to_json()) == R"({"a":1,"app:a":2})");
  changed.drop(scope::session);
  changed.drop(scope::app);
  BOOST_TEST(changed.empty());
}

BOOST_AUTO_TEST_CASE(outcomes_take_the_place_of_all_operations_of_their_scope) {
  delta changed;
  changed.record("n", kind::add, json(1)).value();
  changed.record("n", kind::add, json(2)).value();
  changed.record("gone", kind::compare_and_set, json(), json(1)).value();
  changed.record("app:n", kind::set, json(5)).value();
  const std::vector<resolution> outcomes = {{scope::session, "n", json(11)},
                                            {scope::session, "n", json(13)},
                                            {scope::session, "gone", {}}};
  changed.resolve(outcomes);
  BOOST_TEST(to_text(changed.to_json()) == R"({"app:n":5,"gone":null,"n":13})");
  BOOST_TEST(!changed.has_typed());
  const auto before = changed;
  changed.resolve({});
  BOOST_TEST((changed == before));
}

// Only numbers, so that no operation is refused.
BOOST_DATA_TEST_CASE(a_merged_delta_does_what_both_did_in_turn,
                     data::xrange(40),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  constexpr std::array kinds
    = {kind::set, kind::erase, kind::add, kind::min, kind::max};
  const auto some_delta = [&random, &kinds] {
    delta made;
    for (auto left = random.below(8); left > 0; --left) {
      const auto what = random.pick(kinds);
      made
        .record("k" + std::to_string(random.below(3)),
                what,
                what == kind::erase ? json() : json(random.below(100)))
        .value();
    }
    return made;
  };
  const auto earlier = some_delta();
  const auto later = some_delta();
  auto merged = earlier;
  merged.merge(later);
  std::vector<resolution> resolved;
  const auto install = [&resolved](scope_state& owner, const delta& changed) {
    owner.judge(changed.share(scope::session), resolved, false, {}).value();
    owner.install();
  };
  scope_state in_turn;
  install(in_turn, earlier);
  install(in_turn, later);
  scope_state at_once;
  install(at_once, merged);
  BOOST_TEST((in_turn.keys() == at_once.keys()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(state_operations)

BOOST_AUTO_TEST_CASE(every_operation_has_a_wire_name) {
  delta changed;
  record_text(changed, R"([
    {"op": "add", "key": "app:n", "value": 1},
    {"op": "append", "key": "log", "value": null},
    {"op": "union", "key": "user:tags", "value": ["a"]},
    {"op": "min", "key": "low", "value": -1.5},
    {"op": "max", "key": "high", "value": 18446744073709551615},
    {"op": "merge", "key": "profile", "value": {"age": null}},
    {"op": "cas", "key": "lock", "value": "mine", "expected": null},
    {"op": "erase", "key": "gone"},
    {"op": "erase", "key": "gone too", "value": 1}
  ])")
    .value();
  BOOST_TEST(
    share_of(changed, scope::session)
    == R"(log append null; low min -1.5; high max 18446744073709551615; )"
       R"(profile merge {"age":null}; lock cas "mine"; )"
       R"(gone erase null; gone too erase null)");
  BOOST_TEST(share_of(changed, scope::user) == R"(tags union ["a"])");
  BOOST_TEST(share_of(changed, scope::app) == "n add 1");
}

BOOST_DATA_TEST_CASE(malformed_operations_are_invalid_arguments,
                     data::make(refused_operations),
                     text) {
  delta changed;
  const auto outcome = record_text(changed, text);
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(!reason_of(outcome).empty());
}

BOOST_AUTO_TEST_CASE(operations_come_behind_the_state_delta) {
  auto changed = from_text(R"({"n": 1, "m": 1})");
  record_text(changed, R"([{"op": "add", "key": "n", "value": 2},
                           {"op": "erase", "key": "m"}])")
    .value();
  BOOST_TEST(share_of(changed, scope::session)
             == "n set 1; n add 2; m erase null");
}

BOOST_AUTO_TEST_CASE(typed_operations_come_back_from_json) {
  delta before;
  record_text(before, R"([
    {"op": "add", "key": "n", "value": 1},
    {"op": "cas", "key": "n", "value": 2, "expected": {"a": 1}},
    {"op": "union", "key": "user:tags", "value": ["a"]},
    {"op": "append", "key": "app:log", "value": {"b": []}},
    {"op": "add", "key": "n", "value": 3}
  ])")
    .value();
  delta behind;
  record_operations(behind, before.typed_to_json()).value();
  BOOST_TEST((behind == before));
}

BOOST_AUTO_TEST_SUITE_END()
