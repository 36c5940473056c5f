// Keys and ids: how state keys split by prefix, and which keys and ids are
// valid.

#include "troupe/core/key.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <ostream>
#include <string>
#include <unordered_set>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(keys)

namespace {

std::string times(std::size_t count, std::string_view piece) {
  std::string made;
  while (count-- > 0)
    made += piece;
  return made;
}

struct split_row {
  std::string key;
  scope where;
  std::string name;

  friend std::ostream& operator<<(std::ostream& out, const split_row& row) {
    return out << '\'' << row.key << '\'';
  }
};

const std::vector<split_row> splits = {
  {"topic", scope::session, "topic"},
  {"app:theme", scope::app, "theme"},
  {"user:name", scope::user, "name"},
  {"temp:step", scope::temp, "step"},
  {"app:user:x", scope::app, "user:x"},
  {"app:a:b", scope::app, "a:b"},
  {"App:theme", scope::session, "App:theme"},
  {"USER:name", scope::session, "USER:name"},
  {" app:theme", scope::session, " app:theme"},
  {"apps:theme", scope::session, "apps:theme"},
  {":theme", scope::session, ":theme"},
  {"app", scope::session, "app"},
  {"session:x", scope::session, "session:x"},
  {"naïve", scope::session, "naïve"},
  {"a__b", scope::session, "a__b"},
  {"_x", scope::session, "_x"},
};

const std::vector<std::string> bad_keys = {
  "",
  "app:",
  "user:",
  "temp:",
  times(257, "k"),
  "user:" + times(257, "k"),
  std::string("a\0b", 3),
  std::string("app:\0", 5),
  "__reserved",
  "app:__reserved",
  "user:__",
  "temp:__x",
  "__artifact/",
  "user:__artifact/a",
  "__artifact/" + times(257, "k"),
  "\xff",
  "app:\xc3",
  "user:\xed\xa0\x80", // A surrogate.
  "\xc0\xaf",          // An overlong form.
};

const std::vector<std::string> bad_ids = {
  "",
  " \t\r\n",
  times(513, "i"),
  std::string("a\0b", 3),
  "\x80",
};

} // namespace

BOOST_DATA_TEST_CASE(the_prefix_alone_chooses_the_scope,
                     data::make(splits),
                     row) {
  const auto parts = split_key(row.key);
  BOOST_TEST(prefix_of(parts.where) == prefix_of(row.where));
  BOOST_TEST(parts.name == row.name);
  BOOST_TEST(code_of(check_key(row.key)) == "ok");
  BOOST_TEST(join_key(parts.where, parts.name) == row.key);
}

BOOST_DATA_TEST_CASE(a_bad_key_is_an_invalid_argument,
                     data::make(bad_keys),
                     key) {
  BOOST_TEST(code_of(check_key(key)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_new_key_has_one_prefix) {
  for (const auto* key : {"topic", "app:x", "user:x", "temp:x", "app:x:y"})
    BOOST_TEST(code_of(check_new_key(key)) == "ok");
  for (const auto* key :
       {"app:app:x", "user:app:x", "app:temp:x", "temp:user:x", "app:user:"}) {
    BOOST_TEST(code_of(check_key(key)) == "ok");
    BOOST_TEST(code_of(check_new_key(key)) == "invalid_argument");
  }
  BOOST_TEST(reason_of(check_new_key("user:app:x"))
             == "state key 'user:app:x' has two prefixes; write 'app:x' for "
                "the scope 'app:', or 'user:x'");
}

BOOST_AUTO_TEST_CASE(the_place_of_an_artifact_is_recorded_but_never_set) {
  for (const auto& name : {std::string("a"), times(256, "k")}) {
    BOOST_TEST(code_of(check_key("__artifact/" + name)) == "ok");
    BOOST_TEST(code_of(check_new_key("__artifact/" + name))
               == "invalid_argument");
  }
}

BOOST_AUTO_TEST_CASE(a_name_may_have_256_bytes_behind_its_prefix) {
  for (const auto where :
       {scope::session, scope::user, scope::app, scope::temp})
    BOOST_TEST(code_of(check_key(join_key(where, times(256, "k")))) == "ok");
}

// Reasons are written to JSON and to terminals, so they must not end in half a
// character.
BOOST_AUTO_TEST_CASE(the_reason_of_a_refusal_is_utf8) {
  for (const auto& key : {times(150, "é"),
                          "a" + times(150, "é"),
                          std::string("__\xff"),
                          bad_keys[6]})
    BOOST_TEST(is_utf8(reason_of(check_key(key))));
}

BOOST_AUTO_TEST_CASE(an_id_is_trimmed) {
  BOOST_TEST(check_id(" \t s 1 \r\n", "session id").value() == "s 1");
  BOOST_TEST(check_id(times(512, "i"), "app").value() == times(512, "i"));
  BOOST_TEST(code_of(check_id(times(512, "i") + "  ", "app")) == "ok");
}

BOOST_DATA_TEST_CASE(a_bad_id_is_an_invalid_argument_that_says_which,
                     data::make(bad_ids),
                     id) {
  const auto outcome = check_id(id, "app");
  BOOST_TEST(code_of(outcome) == "invalid_argument");
  BOOST_TEST(reason_of(outcome).starts_with("app "));
}

BOOST_AUTO_TEST_CASE(a_session_key_is_trimmed_in_all_parts) {
  const auto key = check_key({" press", "ann ", "\ts1\n"}).value();
  BOOST_TEST((key == session_key{"press", "ann", "s1"}));
  BOOST_TEST(to_string(key) == "press/ann/s1");
}

BOOST_AUTO_TEST_CASE(each_part_of_a_session_key_is_checked) {
  for (const auto& key : {session_key{" ", "ann", "s1"},
                          session_key{"press", "", "s1"},
                          session_key{"press", "ann", "\xff"}})
    BOOST_TEST(code_of(check_key(key)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(session_keys_of_the_same_letters_hash_apart) {
  const std::hash<session_key> hash;
  const std::unordered_set<std::size_t> hashes = {hash({"a", "b", "c"}),
                                                  hash({"b", "a", "c"}),
                                                  hash({"c", "b", "a"}),
                                                  hash({"ab", "", "c"}),
                                                  hash({"a", "a", "a"})};
  BOOST_TEST(hashes.size() == 5U);
  BOOST_TEST(hash({"a", "b", "c"}) == hash({"a", "b", "c"}));
}

BOOST_AUTO_TEST_SUITE_END()
