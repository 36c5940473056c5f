// The state of one scope at its owner: the result of each operation; a judged
// delta has no effect until it is installed.

#include "troupe/core/support/scope_state.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <deque>
#include <ostream>
#include <span>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(scope_states)

namespace {

using kind = operation_kind;

// An owner of session keys. It keeps the shares alive, as `judge` requires.
class owner {
public:
  explicit owner(size_limits limits = {}) : limits_(limits) {}

  /// Sets the key to `current`, a JSON text; `absent` leaves it out.
  void holds(const std::string& name, const std::string& current) {
    if (current == "absent")
      return;
    delta first;
    first.record(name, kind::set, parse_json(current).value()).value();
    BOOST_REQUIRE_EQUAL(judge(std::move(first)), "ok");
    install();
  }

  /// Judges one share and returns the code.
  std::string judge(delta changed, bool undecided = false) {
    const auto& share = shares_.emplace_back(std::move(changed));
    return code_of(
      state_.judge(share.share(scope::session), resolved_, undecided, limits_));
  }

  std::string judge(std::string_view operations, bool undecided = false) {
    delta changed;
    record_operations(changed, parse_json(operations).value()).value();
    return judge(std::move(changed), undecided);
  }

  void drop_last() { state_.drop_last(); }

  void install() { state_.install(); }

  std::string key(const std::string& name) const {
    return text_of(state_.keys().find(name));
  }

  const scope_state& state() const { return state_; }

  const std::vector<resolution>& resolved() const { return resolved_; }

private:
  size_limits limits_;
  scope_state state_;
  std::deque<delta> shares_;
  std::vector<resolution> resolved_;
};

struct operation_row {
  std::string current;
  std::string op;
  std::string operand;
  std::string outcome; ///< JSON text, `absent`, or the name of an error code.
  std::string expected = "null";

  friend std::ostream& operator<<(std::ostream& out, const operation_row& row) {
    return out << row.current << ' ' << row.op << ' ' << row.operand << " -> "
               << row.outcome << " (expected " << row.expected << ')';
  }
};

const std::vector<operation_row> operation_rows = {
  // add
  {"absent", "add", "5", "5"},
  {"absent", "add", "-0.5", "-0.5"},
  {"1", "add", "2", "3"},
  {"1", "add", "-2", "-1"},
  {"1", "add", "0.5", "1.5"},
  {"0.5", "add", "1", "1.5"},
  {"9223372036854775807", "add", "1", "9223372036854775808"},
  {"18446744073709551614", "add", "1", "18446744073709551615"},
  {"18446744073709551615", "add", "1", "type_error"},
  {"18446744073709551615", "add", "18446744073709551615", "type_error"},
  {"18446744073709551615",
   "add",
   "-9223372036854775808",
   "9223372036854775807"},
  {"18446744073709551615", "add", "-1", "18446744073709551614"},
  {"-9223372036854775808", "add", "-1", "type_error"},
  {"-9223372036854775808",
   "add",
   "18446744073709551615",
   "9223372036854775807"},
  {"-9223372036854775808", "add", "9223372036854775808", "0"},
  {"1e308", "add", "1e308", "type_error"},
  {"\"1\"", "add", "1", "type_error"},
  {"[1]", "add", "1", "type_error"},
  {"true", "add", "1", "type_error"},
  // append
  {"absent", "append", "1", "[1]"},
  {"absent", "append", "null", "[null]"},
  {"[1]", "append", "[2]", "[1,[2]]"},
  {"[1]", "append", "1", "[1,1]"},
  {"{}", "append", "1", "type_error"},
  {"\"a\"", "append", "\"b\"", "type_error"},
  {"0", "append", "1", "type_error"},
  // union
  {"absent", "union", "[2,1,2]", "[2,1]"},
  {"[1,2]", "union", "[3,2,\"2\"]", "[1,2,3,\"2\"]"},
  {"[1,1]", "union", "[]", "[1,1]"},
  {"[{\"a\":1}]", "union", "[{\"a\":1},{\"a\":2}]", "[{\"a\":1},{\"a\":2}]"},
  {"{\"a\":1}", "union", "[1]", "type_error"},
  {"1", "union", "[1]", "type_error"},
  {"[18446744073709551615]", "union", "[-1]", "[18446744073709551615,-1]"},
  // min and max
  {"absent", "min", "7", "7"},
  {"absent", "max", "-7.5", "-7.5"},
  {"3", "min", "2", "2"},
  {"3", "min", "4", "3"},
  {"3", "max", "4", "4"},
  {"3", "max", "2", "3"},
  {"-1", "max", "0.5", "0.5"},
  {"0.5", "min", "-1", "-1"},
  {"-1", "max", "18446744073709551615", "18446744073709551615"},
  {"-1", "min", "18446744073709551615", "-1"},
  {"18446744073709551615", "max", "-1", "18446744073709551615"},
  {"18446744073709551615", "min", "-1", "-1"},
  {"9007199254740993", "max", "9007199254740992.0", "9007199254740993"},
  {"\"3\"", "min", "2", "type_error"},
  {"[3]", "max", "2", "type_error"},
  {"false", "max", "2", "type_error"},
  // merge
  {"absent", "merge", "{\"a\":1}", "{\"a\":1}"},
  {"absent", "merge", "{\"a\":null}", "{}"},
  {"{\"a\":1,\"b\":2}",
   "merge",
   "{\"b\":3,\"c\":4}",
   "{\"a\":1,\"b\":3,\"c\":4}"},
  {"{\"a\":1,\"b\":2}", "merge", "{\"a\":null,\"x\":null}", "{\"b\":2}"},
  {"{\"a\":{\"x\":1}}", "merge", "{\"a\":{\"y\":2}}", "{\"a\":{\"y\":2}}"},
  {"[]", "merge", "{\"a\":1}", "type_error"},
  {"\"a\"", "merge", "{\"a\":1}", "type_error"},
  // compare and set
  {"absent", "cas", "1", "1", "null"},
  {"absent", "cas", "1", "conflict", "0"},
  {"absent", "cas", "null", "absent", "null"},
  {"1", "cas", "2", "2", "1"},
  {"1", "cas", "2", "conflict", "2"},
  {"1", "cas", "2", "conflict", "null"},
  {"1", "cas", "null", "absent", "1"},
  {"{\"a\":[1]}", "cas", "\"new\"", "\"new\"", "{\"a\":[1]}"},
  {"{\"a\":[1]}", "cas", "\"new\"", "conflict", "{\"a\":[1,2]}"},
  {"\"1\"", "cas", "2", "conflict", "1"},
  {"18446744073709551615", "cas", "0", "conflict", "-1"},
  // erase
  {"absent", "erase", "null", "absent"},
  {"1", "erase", "null", "absent"},
};

bool is_code(const std::string& outcome) {
  return outcome == "type_error" || outcome == "conflict";
}

std::string wire_of(const operation_row& row) {
  return R"([{"op": ")" + row.op + R"(", "key": "k", "value": )" + row.operand
         + (row.op == "cas" ? R"(, "expected": )" + row.expected : "") + "}]";
}

delta random_share(random_source& random) {
  constexpr std::array kinds = {kind::set,
                                kind::set,
                                kind::erase,
                                kind::add,
                                kind::add,
                                kind::append,
                                kind::add_to_set,
                                kind::min,
                                kind::max,
                                kind::merge,
                                kind::compare_and_set};
  delta made;
  for (auto left = random.below(4); left > 0; --left) {
    const auto what = random.pick(kinds);
    json operand;
    json expected;
    switch (what) {
    case kind::add_to_set:
      operand = json::array({random.below(3), random.below(3)});
      break;
    case kind::merge:
      operand = {{random.text(1), random.data(1)}};
      break;
    case kind::set:
    case kind::append:
      operand = random.data(2);
      break;
    case kind::compare_and_set:
      operand = random.below(3);
      if (random.one_in(2))
        expected = random.below(3);
      break;
    case kind::erase:
      break;
    default:
      operand = random.integer();
    }
    made.record("k" + std::to_string(random.below(4)), what, operand, expected)
      .value();
  }
  return made;
}

} // namespace

BOOST_DATA_TEST_CASE(an_operation_comes_to_what_the_owner_computes,
                     data::make(operation_rows),
                     row) {
  owner app;
  app.holds("k", row.current);
  const auto verdict = app.judge(wire_of(row));
  if (is_code(row.outcome)) {
    BOOST_TEST(verdict == row.outcome);
    app.install();
    BOOST_TEST(app.key("k")
               == (row.current == "1e308" ? "1e+308" : row.current));
  } else {
    BOOST_TEST(verdict == "ok");
    app.install();
    BOOST_TEST(app.key("k") == row.outcome);
  }
}

// The C++ API makes signed integers and the parser unsigned ones; equal numbers
// must compare equal.
BOOST_AUTO_TEST_CASE(signed_and_unsigned_numbers_are_one_kind) {
  const auto after = [](kind what, json current, json operand) {
    owner app;
    delta first;
    first.record("k", kind::set, std::move(current)).value();
    app.judge(std::move(first));
    delta second;
    second.record("k", what, std::move(operand)).value();
    app.judge(std::move(second));
    app.install();
    return app.key("k");
  };
  const json huge = 18446744073709551615U;
  BOOST_TEST(after(kind::max, huge, 5) == "18446744073709551615");
  BOOST_TEST(after(kind::min, huge, 5) == "5");
  BOOST_TEST(after(kind::max, 5, huge) == "18446744073709551615");
  BOOST_TEST(after(kind::min, 5, huge) == "5");
  BOOST_TEST(after(kind::add, 5U, -6) == "-1");
}

BOOST_AUTO_TEST_CASE(nothing_is_visible_before_it_is_installed) {
  owner app;
  app.holds("n", "1");
  const auto snapshot = app.state().keys();
  BOOST_TEST(app.judge(R"([{"op": "add", "key": "n", "value": 1}])") == "ok");
  BOOST_TEST(app.key("n") == "1");
  BOOST_TEST(app.state().revision() == 1U);
  app.install();
  BOOST_TEST(app.key("n") == "2");
  BOOST_TEST(app.state().revision() == 2U);
  BOOST_TEST(text_of(snapshot.find("n")) == "1");
}

BOOST_AUTO_TEST_CASE(a_share_is_judged_against_those_before_it) {
  owner app;
  delta plain;
  plain.record("n", kind::set, json(10)).value();
  app.judge(std::move(plain));
  BOOST_TEST(app.judge(R"([{"op": "add", "key": "n", "value": 1},
                           {"op": "add", "key": "n", "value": 1}])")
             == "ok");
  BOOST_TEST(
    app.judge(R"([{"op": "cas", "key": "n", "value": 0, "expected": 12}])")
    == "ok");
  BOOST_TEST(
    app.judge(R"([{"op": "cas", "key": "n", "value": 0, "expected": 12}])")
    == "conflict");
  app.install();
  BOOST_TEST(app.key("n") == "0");
}

BOOST_AUTO_TEST_CASE(a_share_that_is_refused_leaves_nothing) {
  owner app;
  app.holds("word", "\"owl\"");
  app.judge(R"([{"op": "add", "key": "n", "value": 1}])");
  const auto resolved = app.resolved().size();
  BOOST_TEST(app.judge(R"([{"op": "add", "key": "n", "value": 1},
                           {"op": "append", "key": "list", "value": 1},
                           {"op": "add", "key": "word", "value": 1}])")
             == "type_error");
  BOOST_TEST(app.resolved().size() == resolved);
  app.judge(R"([{"op": "add", "key": "n", "value": 5}])");
  app.install();
  BOOST_TEST(app.key("n") == "6");
  BOOST_TEST(app.key("list") == "absent");
  BOOST_TEST(app.key("word") == "\"owl\"");
  BOOST_TEST(app.state().revision() == 3U);
}

BOOST_AUTO_TEST_CASE(an_undecided_share_can_be_taken_back) {
  for (const auto* last : {R"([{"op": "add", "key": "n", "value": 100}])",
                           R"([{"op": "erase", "key": "n"}])"}) {
    owner app;
    app.judge(R"([{"op": "add", "key": "n", "value": 1}])");
    BOOST_TEST(app.judge(last, true) == "ok");
    app.drop_last();
    app.install();
    BOOST_TEST(app.key("n") == "1");
    BOOST_TEST(app.state().revision() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(an_undecided_share_that_is_decided_counts) {
  owner app;
  app.judge(R"([{"op": "add", "key": "n", "value": 1}])", true);
  app.install();
  app.judge(R"([{"op": "add", "key": "n", "value": 1}])", true);
  app.drop_last();
  app.install();
  BOOST_TEST(app.key("n") == "1");
  BOOST_TEST(app.state().revision() == 1U);
}

BOOST_AUTO_TEST_CASE(outcomes_are_recorded_in_order_for_typed_shares) {
  owner app;
  delta mixed;
  mixed.record("a", kind::set, json(1)).value();
  mixed.record("n", kind::add, json(2)).value();
  mixed.record("gone", kind::erase).value();
  mixed.record("n", kind::add, json(3)).value();
  delta plain;
  plain.record("b", kind::set, json(1)).value();
  app.judge(std::move(plain));
  BOOST_TEST(app.resolved().empty());
  app.judge(std::move(mixed));
  std::string shown;
  for (const auto& done : app.resolved())
    shown += done.name + '=' + to_text(done.outcome.data()) + ' ';
  BOOST_TEST(shown == "a=1 n=2 gone=null n=5 ");
}

BOOST_AUTO_TEST_CASE(growing_past_the_limit_is_too_large) {
  owner app({.value_bytes_max = 99});
  const auto element = '"' + std::string(30, 'x') + '"';
  const auto append
    = R"([{"op": "append", "key": "log", "value": )" + element + "}]";
  BOOST_TEST(app.judge(append) == "ok");
  BOOST_TEST(app.judge(append) == "ok");
  BOOST_TEST(app.judge(append) == "too_large");
  BOOST_TEST(app.judge(R"([{"op": "merge", "key": "map", "value": {"a": )"
                       + element + "}}]")
             == "ok");
  BOOST_TEST(app.judge(R"([{"op": "union", "key": "log", "value": ["other )"
                       + element.substr(1) + "]}]")
             == "too_large");
  app.install();
  BOOST_TEST(app.key("log") == '[' + element + ',' + element + ']');
  BOOST_TEST(app.state().revision() == 3U);
}

BOOST_AUTO_TEST_CASE(growing_too_deep_is_refused) {
  owner app;
  app.holds("log", "[]");
  const auto deep = std::string(64, '[') + std::string(64, ']');
  delta appending;
  appending.record("log", kind::append, parse_json(deep).value()).value();
  BOOST_TEST(app.judge(std::move(appending)) == "too_large");
  app.install();
  BOOST_TEST(app.key("log") == "[]");
}

BOOST_DATA_TEST_CASE(a_batch_does_what_its_shares_do_one_by_one,
                     data::xrange(150),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  owner one_by_one;
  owner batched;
  // The state after the stored events: resolved to plain values, in order.
  state_map replayed;
  for (int round = 0; round < 5; ++round) {
    for (auto left = random.below(8); left > 0; --left) {
      const auto share = random_share(random);
      const auto resolved_before = batched.resolved().size();
      const auto verdict = one_by_one.judge(share);
      one_by_one.install();
      BOOST_REQUIRE_EQUAL(batched.judge(share), verdict);
      if (verdict != "ok")
        continue;
      auto stored = share;
      stored.resolve(std::span(batched.resolved()).subspan(resolved_before));
      BOOST_REQUIRE(!stored.has_typed());
      for (const auto& done : stored.operations())
        if (done.operand.is_null())
          replayed.erase(done.name);
        else
          replayed.set(done.name, done.operand);
    }
    if (random.one_in(2)) {
      const auto verdict = batched.judge(random_share(random), true);
      if (verdict == "ok")
        batched.drop_last();
    }
    batched.install();
    BOOST_REQUIRE((batched.state().keys() == one_by_one.state().keys()));
    BOOST_REQUIRE_EQUAL(batched.state().revision(),
                        one_by_one.state().revision());
  }
  BOOST_TEST((replayed == one_by_one.state().keys()));
}

BOOST_AUTO_TEST_SUITE_END()
