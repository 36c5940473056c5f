// Field names between camelCase and snake_case.

#include "troupe/core/support/wire.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(wire_names)

BOOST_AUTO_TEST_CASE(inner_underscores_raise_the_next_letter) {
  for (const auto& [name, camel] :
       std::vector<std::pair<std::string, std::string>>{
         {"state_delta", "stateDelta"},
         {"long_running_tool_ids", "longRunningToolIds"},
         {"stateDelta", "stateDelta"},
         {"id", "id"},
         {"", ""},
         {"a_1", "a1"},
         {"naïve_name", "naïveName"},
         {"_private", "_private"},
         {"trailing_", "trailing_"}})
    BOOST_TEST(to_camel_case(name) == camel);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(wire_readers)

BOOST_AUTO_TEST_CASE(what_nobody_takes_is_left_over) {
  const json data = {{"first_field", 1}, {"second", "two"}, {"third", nullptr}};
  auto reader = wire_reader::open(data, "thing").value();
  std::string second;
  reader.take("second", second);
  std::string absent = "as it was";
  reader.take("fourth", absent);
  BOOST_TEST(second == "two");
  BOOST_TEST(absent == "as it was");
  BOOST_TEST(to_text(std::move(reader).rest().value())
             == R"({"firstField":1,"third":null})");
}

BOOST_AUTO_TEST_CASE(both_spellings_of_one_field_are_refused) {
  const json data = {{"state_delta", 1}, {"stateDelta", 1}};
  BOOST_TEST(code_of(wire_reader::open(data, "thing")) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_first_failure_is_the_one_told) {
  const json data = {{"a", 1}, {"b", 2}};
  auto reader = wire_reader::open(data, "thing").value();
  bool flag = true;
  std::string words;
  reader.take("a", flag);
  reader.take("b", words);
  BOOST_TEST(flag);
  const auto rest = std::move(reader).rest();
  BOOST_TEST(code_of(rest) == "invalid_argument");
  BOOST_TEST(reason_of(rest) == "thing: 'a' must be a boolean, not a number");
}

BOOST_AUTO_TEST_SUITE_END()
