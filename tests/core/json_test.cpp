// JSON at the boundary: refused texts, and accepted ones that stay equal.

#include "troupe/core/json.hpp"

#include "../outcome.hpp"
#include "../random.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

namespace {

std::string nested(std::size_t depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

std::string nested_objects(std::size_t depth) {
  std::string text;
  for (std::size_t level = 1; level < depth; ++level)
    text += R"({"k":)";
  return text + "{}" + std::string(depth - 1, '}');
}

const std::vector<std::string> refused_texts = {
  "",
  " ",
  "{",
  "{}}",
  "1 2",
  "[1,]",
  "{'a': 1}",
  "nul",
  "NaN",
  "Infinity",
  "// no\n1",
  R"({"a": 1, "a": 1})",
  R"({"b": {"a": 1, "a": 2}})",
  R"([{"a": 1, "b": 2, "a": 3}])",
  R"({"a": 1, "\u0061": 2})",
  "1e999",
  "-1e999",
  "[1, {\"deep\": 1e400}]",
  "18446744073709551616",
  "-9223372036854775809",
  "123456789012345678901234567890",
  "\"\xff\"",
  "{\"\xc3\": 1}",
  R"("\ud800")",
};

// Texts, and the compact form of each.
const std::vector<std::pair<std::string, std::string>> accepted_texts = {
  {" {} ", "{}"},
  {"null", "null"},
  {R"({"a": {"a": 1}, "b": {"a": 1}})", R"({"a":{"a":1},"b":{"a":1}})"},
  {R"([{"a": 1}, {"a": 2}])", R"([{"a":1},{"a":2}])"},
  {"18446744073709551615", "18446744073709551615"},
  {"9223372036854775807", "9223372036854775807"},
  {"-9223372036854775808", "-9223372036854775808"},
  {"1e3", "1000.0"},
  {"1.5E-3", "0.0015"},
  {R"("\u00e9\ud83e\udd89")", "\"é🦉\""},
  {R"("a\u0000b")", R"("a\u0000b")"},
};

} // namespace

BOOST_AUTO_TEST_SUITE(json_texts)

BOOST_DATA_TEST_CASE(bad_text_is_an_invalid_argument,
                     data::make(refused_texts),
                     text) {
  const auto parsed = parse_json(text);
  BOOST_TEST(code_of(parsed) == "invalid_argument");
  BOOST_TEST(!reason_of(parsed).empty());
}

BOOST_AUTO_TEST_CASE(good_text_keeps_its_meaning) {
  for (const auto& [text, compact] : accepted_texts)
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(code_of(parse_json(text)) == "ok");
      BOOST_TEST(to_text(parse_json(text).value()) == compact);
    }
}

BOOST_AUTO_TEST_CASE(a_doubled_key_is_named) {
  BOOST_TEST(reason_of(parse_json(R"({"topic": 1, "topic": 2})")).find("topic")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(sixty_four_levels_are_enough_and_one_more_is_refused) {
  for (const auto& [text, code] :
       std::vector<std::pair<std::string, std::string>>{
         {nested(64, '[', ']'), "ok"},
         {nested(65, '[', ']'), "invalid_argument"},
         {nested_objects(64), "ok"},
         {nested_objects(65), "invalid_argument"},
         {nested(1'000'000, '[', ']'), "invalid_argument"},
         {std::string(1'000'000, '['), "invalid_argument"}})
    BOOST_TEST(code_of(parse_json(text)) == code);
}

// A closed list no longer counts for the depth.
BOOST_AUTO_TEST_CASE(depth_is_not_the_number_of_lists) {
  std::string text = "[[]";
  for (int count = 0; count < 100; ++count)
    text += ",[[]]";
  BOOST_TEST(code_of(parse_json(text + "]")) == "ok");
}

BOOST_DATA_TEST_CASE(text_and_data_say_the_same, data::xrange(50), seed) {
  random_source random(static_cast<std::uint64_t>(seed));
  const auto before = random.data(6);
  const auto behind = parse_json(to_text(before));
  BOOST_REQUIRE(code_of(behind) == "ok");
  BOOST_TEST((*behind == before));
  BOOST_TEST(to_text(*behind) == to_text(before));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(json_data)

BOOST_AUTO_TEST_CASE(what_no_text_can_say_is_refused) {
  constexpr auto infinity = std::numeric_limits<double>::infinity();
  for (const auto& bad : {json(std::numeric_limits<double>::quiet_NaN()),
                          json(infinity),
                          json({{"a", json::array({-infinity})}}),
                          json("\xff"),
                          json({{"\xc3", 1}}),
                          json::array({1, "\xed\xa0\x80"}),
                          json::binary({1, 2}),
                          json(json::value_t::discarded)})
    BOOST_TEST(code_of(check_json(bad, "it")) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_reason_names_the_value) {
  BOOST_TEST(reason_of(check_json("\xff", "value of 'topic'"))
               .starts_with("value of 'topic'"));
}

BOOST_AUTO_TEST_CASE(data_is_as_deep_as_text_may_be) {
  const auto deep = [](std::size_t depth) {
    auto made = json::array();
    for (std::size_t level = 1; level < depth; ++level)
      made = level % 2 == 0 ? json::array({made}) : json{{"k", made}};
    return made;
  };
  BOOST_TEST(code_of(check_json(deep(64), "it")) == "ok");
  BOOST_TEST(code_of(check_json(deep(65), "it")) == "invalid_argument");
}

// Limits are given in bytes of compact JSON, so the size is counted that way.
BOOST_AUTO_TEST_CASE(the_size_is_that_of_the_compact_text) {
  for (const auto* text : {R"("")",
                           R"("abc")",
                           R"("é")",
                           "{}",
                           "[]",
                           R"({"a":"b","c":["d",[],{}]})",
                           "[1,22,-333,4444]",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "[true,false,null]"}) {
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST(check_json(parse_json(text).value(), "it").value()
                 == std::string_view(text).size());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(utf8)

BOOST_AUTO_TEST_CASE(bad_bytes_are_found_at_any_place) {
  for (std::size_t place = 0; place < 40; ++place) {
    std::string text(40, 'a');
    BOOST_TEST(is_utf8(text));
    text[place] = '\xff';
    BOOST_TEST(!is_utf8(text));
    BOOST_TEST(is_utf8(std::string(place, 'a') + "é"));
    BOOST_TEST(!is_utf8(std::string(place, 'a') + "\xc3"));
  }
  BOOST_TEST(is_utf8(""));
}

// With nlohmann's callback, this takes a time that grows with the square.
BOOST_AUTO_TEST_CASE(many_objects_in_one_list_are_read_in_linear_time) {
  std::string text = "[{}";
  for (int count = 0; count < 100'000; ++count)
    text += R"(,{"":{}})";
  const auto parsed = parse_json(text + "]");
  BOOST_TEST_REQUIRE(parsed.has_value());
  BOOST_TEST(parsed->size() == 100'001U);
}

BOOST_AUTO_TEST_SUITE_END()
