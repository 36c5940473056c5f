// The merged view: reads see the four scopes and the recorded changes, and show
// the values that the owners will install.

#include "troupe/core/state.hpp"

#include "troupe/core/support/scope_state.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(state_views)

namespace {

using kind = operation_kind;

// Splits merged JSON into the state of each owner.
state_snapshot snapshot_of(std::string_view text) {
  state_snapshot made;
  const auto changed = delta::from_json(parse_json(text).value()).value();
  for (const auto& done : changed.operations()) {
    auto& keys = done.where == scope::app    ? made.app
                 : done.where == scope::user ? made.user
                 : done.where == scope::temp ? made.temp
                                             : made.session;
    keys.set(done.name, done.operand);
  }
  return made;
}

state view_of(std::string_view text) {
  return state(snapshot_of(text));
}

std::string read(const readonly_state& view, std::string_view key) {
  return text_of(view.find(key));
}

template <class T>
concept has_find = requires(T&& held) {
  std::forward<T>(held).find("k");
};

constexpr auto mixed
  = R"({"topic": "owls", "app:n": 1, "user:name": "ann", "temp:raw": [1, 2]})";

const std::vector<std::string> bad_keys = {"", "app:", "user:__x", "\xff"};

} // namespace

BOOST_AUTO_TEST_CASE(all_scopes_are_read_by_their_full_keys) {
  const auto view = view_of(mixed);
  BOOST_TEST(read(view, "topic") == "\"owls\"");
  BOOST_TEST(read(view, "app:n") == "1");
  BOOST_TEST(read(view, "user:name") == "\"ann\"");
  BOOST_TEST(read(view, "temp:raw") == "[1,2]");
  for (const auto* other :
       {"n", "app:topic", "user:n", "name", "app:", "", "__x"})
    BOOST_TEST(!view.contains(other));
  BOOST_TEST(to_text(view.all()) == to_text(parse_json(mixed).value()));
}

BOOST_AUTO_TEST_CASE(values_are_converted_or_refused) {
  const auto view = view_of(
    R"({"n": 3, "x": 1.5, "big": 5000000000, "minus": -1, "word": "owl", "yes": true, "list": [1, 2]})");
  BOOST_TEST(view.get<int>("n") == 3);
  BOOST_TEST(view.get<double>("n") == 3.0);
  BOOST_TEST(view.get<std::int64_t>("big") == 5000000000);
  BOOST_TEST(view.get<std::string>("word") == "owl");
  BOOST_TEST(view.get<bool>("yes"));
  BOOST_TEST(view.get<std::vector<int>>("list") == std::vector({1, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(view.get("absent", 7) == 7);
  BOOST_TEST(view.get("n", 7) == 3);
  BOOST_TEST(code_thrown_by([&view] { view.get<int>("absent"); })
             == "not_found");
  BOOST_TEST(code_thrown_by([&view] { view.get<int>("word"); })
             == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.get("word", 1); }) == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.get<std::string>("n"); })
             == "type_error");
}

// A number that does not fit must not be returned.
BOOST_AUTO_TEST_CASE(a_number_that_does_not_fit_is_a_type_error) {
  const auto view
    = view_of(R"({"x": 1.5, "big": 5000000000, "minus": -1, "yes": true})");
  BOOST_TEST(code_thrown_by([&view] { view.get<int>("x"); }) == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.get<int>("big"); }) == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.get<unsigned>("minus"); })
             == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.get<int>("yes"); }) == "type_error");
}

BOOST_AUTO_TEST_CASE(each_write_is_read_at_once) {
  auto view = view_of(
    R"({"n": 1, "list": [1], "set": [1], "map": {"a": 1}, "gone": 1, "lock": "free"})");
  view.set("topic", "mice");
  view.erase("gone");
  view.add("n", 2);
  view.append("list", json::array({2}));
  view.add_to_set("set", {1, 2});
  view.min("low", 5);
  view.min("low", 3);
  view.max("high", 5);
  view.max("high", 3);
  view.merge("map", {{"a", nullptr}, {"b", 2}});
  view.compare_and_set("lock", "free", "mine");
  BOOST_TEST(read(view, "gone") == "absent");
  BOOST_TEST(
    to_text(view.all())
    == R"({"high":5,"list":[1,[2]],"lock":"mine","low":3,"map":{"b":2},"n":3,"set":[1,2],"topic":"mice"})");
  const auto all = view.all();
  for (const auto& [key, held] : all.items())
    BOOST_TEST(read(view, key) == to_text(held));
}

// Under AddressSanitizer a loop over a temporary that has ended fails.
BOOST_AUTO_TEST_CASE(a_loop_over_all_keys_of_a_temporary_is_safe) {
  std::string seen;
  for (auto& [key, held] : view_of(mixed).all().items())
    seen += key + "=" + held.dump() + " ";
  BOOST_TEST(seen == R"(app:n=1 temp:raw=[1,2] topic="owls" user:name="ann" )");
}

BOOST_AUTO_TEST_CASE(a_state_can_be_iterated_itself) {
  auto view = view_of(mixed);
  view.add("app:n", 41);
  view.erase("topic");
  std::string seen;
  for (const auto& [key, held] : std::as_const(view)) {
    seen += key + "=" + held.dump() + " ";
    // The loop shows the state of its start.
    view.set("user:name", "bob");
  }
  BOOST_TEST(seen == R"(app:n=42 temp:raw=[1,2] user:name="ann" )");
  for (const auto& entry : state())
    BOOST_ERROR(entry.key() << " is no key of an empty state");
}

BOOST_AUTO_TEST_CASE(a_temporary_object_of_all_keys_gives_copies) {
  using temporary = state_object&&;
  static_assert(std::is_same_v<decltype(std::declval<temporary>()["k"]), json>);
  static_assert(
    std::is_same_v<decltype(std::declval<temporary>().at("k")), json>);
  static_assert(!has_find<temporary>);
  static_assert(has_find<const state_object&>);
  BOOST_TEST(view_of(mixed).all()["topic"] == json("owls"));
  BOOST_TEST(view_of(mixed).all()["absent"] == json());
  const auto all = view_of(mixed).all();
  BOOST_TEST(all["absent"] == json());
  BOOST_TEST((all.find("absent") == all.end()));
}

// Each of these converts the object and not a list of its values.
BOOST_AUTO_TEST_CASE(an_object_of_all_keys_is_json) {
  const auto view = view_of(R"({"topic": "owls"})");
  const json copied = view.all();
  const json moved(view.all());
  const json inside{{"state", view.all()}};
  const auto taken = [](const json& data) { return to_text(data); };
  for (const auto& text : {to_text(copied),
                           to_text(moved),
                           to_text(inside["state"]),
                           taken(view.all()),
                           view.all().dump()})
    BOOST_TEST(text == R"({"topic":"owls"})");
}

BOOST_AUTO_TEST_CASE(a_set_to_null_erases) {
  auto view = view_of(mixed);
  view.set("app:n", nullptr);
  BOOST_TEST(!view.contains("app:n"));
  BOOST_TEST(!view.all().contains("app:n"));
  BOOST_TEST(to_text(view.recorded().to_json()) == R"({"app:n":null})");
}

// Old keys of this kind stay readable, and can be removed.
BOOST_AUTO_TEST_CASE(a_key_with_two_prefixes_can_only_be_read_and_erased) {
  state_snapshot snapshot;
  snapshot.app.set("app:x", json(1));
  state view(std::move(snapshot));
  BOOST_TEST(read(view, "app:app:x") == "1");
  BOOST_TEST(code_thrown_by([&] { view.set("app:app:x", 2); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] { view.add("user:app:x", 1); })
             == "invalid_argument");
  BOOST_TEST(view.recorded().empty());
  view.erase("app:app:x");
  view.set("app:temp:y", nullptr);
  BOOST_TEST(read(view, "app:app:x") == "absent");
}

// Another writer may add the key before the event is appended.
BOOST_AUTO_TEST_CASE(an_erase_of_an_absent_key_is_recorded) {
  state view;
  view.erase("user:x");
  BOOST_TEST(to_text(view.recorded().to_json()) == R"({"user:x":null})");
}

BOOST_AUTO_TEST_CASE(the_snapshot_is_not_written_to) {
  const auto snapshot = snapshot_of(mixed);
  state view(snapshot);
  view.add("app:n", 41);
  view.erase("topic");
  BOOST_TEST(to_text(state(snapshot).all())
             == to_text(parse_json(mixed).value()));
}

BOOST_AUTO_TEST_CASE(taking_leaves_the_snapshot) {
  auto view = view_of(mixed);
  view.add("app:n", 1);
  const auto taken = view.take();
  BOOST_TEST(to_text(taken.typed_to_json())
             == R"([{"key":"app:n","op":"add","value":1}])");
  BOOST_TEST(view.recorded().empty());
  BOOST_TEST(read(view, "app:n") == "1");
}

BOOST_AUTO_TEST_CASE(what_was_recorded_lies_on_the_newest_snapshot) {
  auto view = view_of(R"({"app:n": 1, "topic": "owls"})");
  view.add("app:n", 10);
  view.renew(snapshot_of(R"({"app:n": 5})"));
  BOOST_TEST(read(view, "app:n") == "15");
  BOOST_TEST(read(view, "topic") == "absent");
}

BOOST_AUTO_TEST_CASE(finished_tools_of_the_turn_are_read_through) {
  const auto staged = std::make_shared<staged_deltas>();
  state view(
    snapshot_of(R"({"n": 1, "gone": 1, "topic": "owls"})"), {}, staged);
  view.add("n", 100);
  delta first;
  first.record("n", kind::add, json(10)).value();
  first.record("gone", kind::erase).value();
  staged->add(first);
  delta second;
  second.record("new", kind::set, json("word")).value();
  staged->add(second);
  BOOST_TEST(read(view, "n") == "111");
  BOOST_TEST(read(view, "gone") == "absent");
  BOOST_TEST(to_text(view.all()) == R"({"n":111,"new":"word","topic":"owls"})");
  BOOST_TEST(to_text(view.recorded().typed_to_json())
             == R"([{"key":"n","op":"add","value":100}])");
}

BOOST_DATA_TEST_CASE(every_write_checks_its_key, data::make(bad_keys), key) {
  state view;
  for (const auto& code :
       {code_thrown_by([&] { view.set(key, 1); }),
        code_thrown_by([&] { view.erase(key); }),
        code_thrown_by([&] { view.add(key, 1); }),
        code_thrown_by([&] { view.append(key, 1); }),
        code_thrown_by([&] { view.add_to_set(key, json::array()); }),
        code_thrown_by([&] { view.min(key, 1); }),
        code_thrown_by([&] { view.max(key, 1); }),
        code_thrown_by([&] { view.merge(key, json::object()); }),
        code_thrown_by([&] { view.compare_and_set(key, 1, 2); })})
    BOOST_TEST(code == "invalid_argument");
  BOOST_TEST(view.recorded().empty());
}

BOOST_AUTO_TEST_CASE(what_is_no_json_or_too_large_is_not_recorded) {
  state view({}, {.value_bytes_max = 100});
  const std::string large(100, 'x');
  BOOST_TEST(code_thrown_by([&] { view.set("k", std::nan("")); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] { view.append("k", "\xff"); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] { view.add("k", "1"); }) == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] { view.set("k", large); }) == "too_large");
  BOOST_TEST(code_thrown_by([&] { view.append("k", large); }) == "too_large");
  BOOST_TEST(code_thrown_by([&] { view.compare_and_set("k", large, 1); })
             == "too_large");
  BOOST_TEST(view.recorded().empty());
  view.set("k", std::string(98, 'x'));
  BOOST_TEST(view.contains("k"));
}

BOOST_AUTO_TEST_CASE(reading_what_the_owner_will_refuse_throws) {
  auto view = view_of(R"({"word": "owl", "n": 1})");
  view.add("word", 1);
  BOOST_TEST(code_thrown_by([&view] { view.find("word"); }) == "type_error");
  BOOST_TEST(code_thrown_by([&view] { view.all(); }) == "type_error");
  BOOST_TEST(read(view, "n") == "1");
}

BOOST_DATA_TEST_CASE(the_view_shows_what_the_owners_will_install,
                     data::xrange(100),
                     seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  constexpr std::array scopes
    = {scope::session, scope::user, scope::app, scope::temp};
  auto snapshot = snapshot_of(
    R"({"n": 5, "list": [1], "app:n": 5, "user:list": [1], "temp:n": 1})");
  state view(snapshot);
  for (auto left = random.below(12); left > 0; --left) {
    const auto key = std::string(prefix_of(random.pick(scopes)))
                     + (random.one_in(2) ? "n" : "list");
    const json number = random.below(9);
    switch (random.below(8)) {
    case 0:
      view.set(key, random.data(1));
      break;
    case 1:
      view.erase(key);
      break;
    case 2:
      view.append(key, number);
      break;
    case 3:
      view.add_to_set(key, {number, 1});
      break;
    case 4:
      view.min(key, number);
      break;
    case 5:
      view.max(key, number);
      break;
    default:
      view.add(key, number);
    }
  }
  const auto recorded = view.recorded();
  bool refused = false;
  auto installed = json::object();
  for (const auto where : scopes) {
    scope_state owner(snapshot.of(where));
    std::vector<resolution> resolved;
    refused
      = refused || !owner.judge(recorded.share(where), resolved, false, {});
    owner.install();
    owner.keys().for_each([&](std::string_view name, const value& held) {
      installed[join_key(where, name)] = held.data();
    });
  }
  if (refused)
    BOOST_TEST(code_thrown_by([&view] { view.all(); }) == "type_error");
  else
    BOOST_TEST(to_text(view.all()) == to_text(installed));
}

BOOST_AUTO_TEST_SUITE_END()
