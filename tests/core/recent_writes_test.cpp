#include "troupe/core/support/recent_writes.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

namespace {

recent_write write_of(const std::string& id, json held = 1) {
  return {id, "hash of " + id, {7, value(std::move(held))}};
}

std::string answer_of(const recent_writes& all, const std::string& id) {
  const auto* const found = all.find(id);
  if (found == nullptr)
    return "unknown";
  return found->answer.value ? to_text(found->answer.value->data()) : "unset";
}

// Adds `count` writes `w0`, `w1`, …, and stores them in `keys`.
recent_writes stored(state_map& keys, std::size_t count) {
  recent_writes all;
  for (std::size_t index = 0; index < count; ++index) {
    const auto kept
      = all.add(write_of("w" + std::to_string(index), index), scope::app);
    keys.set(kept.name, kept.outcome);
  }
  return all;
}

delta one(operation_kind kind, json operand, json expected = nullptr) {
  delta made;
  made.record("app:n", kind, std::move(operand), std::move(expected)).value();
  return made;
}

} // namespace

BOOST_AUTO_TEST_SUITE(recent_writes_of_an_owner)

BOOST_AUTO_TEST_CASE(a_write_is_found_by_its_id) {
  recent_writes all;
  BOOST_TEST(answer_of(all, "w") == "unknown");
  const auto kept = all.add(write_of("w", "x"), scope::user);
  BOOST_TEST((kept.where == scope::user));
  BOOST_TEST(is_recent_write(kept.name));
  BOOST_TEST(code_of(check_key(join_key(scope::user, kept.name)))
             == "invalid_argument");
  BOOST_TEST(answer_of(all, "w") == "\"x\"");
  BOOST_TEST(all.find("w")->operations == "hash of w");
  BOOST_TEST(answer_of(all, "v") == "unknown");
}

BOOST_AUTO_TEST_CASE(the_newest_64_writes_are_kept) {
  state_map keys;
  auto all = stored(keys, 100);
  BOOST_TEST(keys.size() == 64U);
  auto read = recent_writes::take_from(keys);
  BOOST_TEST(keys.size() == 0U);
  for (auto* each : {&all, &read}) {
    BOOST_TEST(answer_of(*each, "w35") == "unknown");
    BOOST_TEST(answer_of(*each, "w36") == "36");
    BOOST_TEST(answer_of(*each, "w99") == "99");
    each->add(write_of("next"), scope::app);
    BOOST_TEST(answer_of(*each, "w36") == "unknown");
    BOOST_TEST(answer_of(*each, "w37") == "37");
  }
}

BOOST_AUTO_TEST_CASE(a_large_value_is_left_out) {
  recent_writes all;
  all.add(write_of("small", std::string(1'022, 'x')), scope::app);
  all.add(write_of("large", std::string(1'023, 'x')), scope::app);
  all.add(write_of("erased", nullptr), scope::app);
  BOOST_TEST(answer_of(all, "small").size() == 1'024U);
  BOOST_TEST(answer_of(all, "large") == "unset");
  BOOST_TEST(answer_of(all, "erased") == "null");
}

BOOST_AUTO_TEST_CASE(forgotten_writes_leave_no_key) {
  state_map keys;
  auto all = stored(keys, 70);
  BOOST_TEST(keys.size() == recent_writes::count_max);
  for (const auto& erased : all.forget_all(scope::app)) {
    BOOST_TEST(erased.outcome.is_null());
    keys.erase(erased.name);
  }
  BOOST_TEST(keys.size() == 0U);
  BOOST_TEST(all.empty());
  BOOST_TEST(answer_of(all, "w69") == "unknown");
}

BOOST_AUTO_TEST_CASE(only_keys_of_writes_are_hidden) {
  state_map keys;
  stored(keys, 3);
  keys.set("n", json(1));
  keys.set("__other", json(2));
  hide_recent_writes(keys);
  BOOST_TEST(keys.size() == 2U);
  BOOST_TEST(keys.find("n") != nullptr);
}

BOOST_AUTO_TEST_CASE(keys_of_another_form_are_dropped) {
  state_map keys;
  stored(keys, 2);
  keys.set("__write/0", json("damaged"));
  const auto read = recent_writes::take_from(keys);
  BOOST_TEST(keys.size() == 0U);
  BOOST_TEST(answer_of(read, "w0") == "unknown");
  BOOST_TEST(answer_of(read, "w1") == "1");
}

BOOST_AUTO_TEST_CASE(other_operations_have_another_fingerprint) {
  const auto print = fingerprint(one(operation_kind::add, 1));
  BOOST_TEST(print == fingerprint(one(operation_kind::add, 1)));
  BOOST_TEST(print != fingerprint(one(operation_kind::add, 2)));
  BOOST_TEST(print != fingerprint(one(operation_kind::set, 1)));
  BOOST_TEST(print != fingerprint(one(operation_kind::min, 1)));
  BOOST_TEST(fingerprint(one(operation_kind::compare_and_set, 1, 2))
             != fingerprint(one(operation_kind::compare_and_set, 1, 3)));
}

BOOST_AUTO_TEST_SUITE_END()
