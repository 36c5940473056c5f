// The names that an artifact may have.

#include "troupe/stores/artifact_store.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(artifact_names)

const std::vector<std::string> good_names = {"a",
                                             "Report (2).pdf",
                                             "...",
                                             ".hidden",
                                             " a ",
                                             "雪.png",
                                             "a:b",
                                             "app:theme",
                                             "USER:a",
                                             "%2e%2e",
                                             "con",
                                             std::string(256, 'n')};

BOOST_DATA_TEST_CASE(a_plain_name_is_the_sessions,
                     data::make(good_names),
                     name) {
  const auto parts = check_artifact_name(name);
  BOOST_TEST_REQUIRE(code_of(parts) == "ok", reason_of(parts));
  BOOST_TEST((parts->where == scope::session));
  BOOST_TEST(parts->name == name);
}

BOOST_DATA_TEST_CASE(a_name_after_user_is_the_users,
                     data::make(good_names),
                     name) {
  const auto whole = "user:" + name;
  const auto parts = check_artifact_name(whole);
  BOOST_TEST_REQUIRE(code_of(parts) == "ok", reason_of(parts));
  BOOST_TEST((parts->where == scope::user));
  BOOST_TEST(parts->name == name);
}

const std::vector<std::string> bad_names = {"",
                                            ".",
                                            "..",
                                            " ",
                                            "   ",
                                            "a/b",
                                            "/",
                                            "../a",
                                            "a\\b",
                                            "a\nb",
                                            "a\0b"s,
                                            "\x7f",
                                            "\xc2\x85",
                                            "\xff",
                                            std::string(257, 'n')};
const std::vector<std::string> broken_rules = {"is empty",
                                               "a folder",
                                               "a folder",
                                               "is blank",
                                               "is blank",
                                               "holds a '/'",
                                               "holds a '/'",
                                               "holds a '/'",
                                               "or a '\\'",
                                               "control",
                                               "NUL",
                                               "control",
                                               "control",
                                               "not UTF-8",
                                               "256 bytes"};

BOOST_DATA_TEST_CASE(a_bad_name_is_refused_with_the_rule,
                     data::make(bad_names) ^ data::make(broken_rules),
                     name,
                     rule) {
  for (const auto* prefix : {"", "user:"}) {
    const auto whole = prefix + name;
    const auto parts = check_artifact_name(whole);
    BOOST_TEST(code_of(parts) == "invalid_argument");
    BOOST_TEST(reason_of(parts).find(rule) != std::string::npos,
               reason_of(parts));
  }
}

BOOST_AUTO_TEST_SUITE_END()
