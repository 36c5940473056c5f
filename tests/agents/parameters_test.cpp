// Parameter structs: their schema, and the struct made from arguments.

#include "troupe/agents/parameters.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(parameter_structs)

namespace {

struct place {
  double x = 0;
  double y = 0;

  static constexpr auto parameters
    = std::tuple(parameter("x", &place::x), parameter("y", &place::y));
};

struct query {
  std::string city;
  std::optional<bool> soon;
  std::vector<place> places;
  std::int8_t level = 0;
  std::optional<json> rest;

  static constexpr auto parameters
    = std::tuple(parameter("city", &query::city, "Its name"),
                 parameter("soon", &query::soon),
                 parameter("places", &query::places),
                 parameter("level", &query::level),
                 parameter("rest", &query::rest));
};

json arguments(json level) {
  return {{"city", "Rome"},
          {"places", {{{"x", 1}, {"y", 2.5}}}},
          {"level", std::move(level)}};
}

std::string code_for(const json& args) {
  return code_thrown_by([&] { from_arguments<query>(args); });
}

} // namespace

BOOST_AUTO_TEST_CASE(the_schema_lists_every_field) {
  BOOST_TEST(schema_of<query>() == json::parse(R"({
      "type": "object",
      "properties": {
        "city": {"type": "string", "description": "Its name"},
        "soon": {"type": "boolean"},
        "places": {"type": "array", "items": {
          "type": "object",
          "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
          "required": ["x", "y"]}},
        "level": {"type": "integer"},
        "rest": {}
      },
      "required": ["city", "places", "level"]
    })"));
}

BOOST_AUTO_TEST_CASE(arguments_fill_the_struct) {
  auto args = arguments(-7);
  args["rest"] = {1, "two"};
  args["unknown"] = "passed over";
  const auto made = from_arguments<query>(args);
  BOOST_TEST(made.city == "Rome");
  BOOST_TEST(!made.soon.has_value());
  BOOST_TEST(made.places.at(0).y == 2.5);
  BOOST_TEST(int{made.level} == -7);
  BOOST_TEST(made.rest.value() == json({1, "two"}));
}

BOOST_AUTO_TEST_CASE(a_number_that_does_not_fit_its_field_is_refused) {
  BOOST_TEST(int{from_arguments<query>(arguments(127)).level} == 127);
  BOOST_TEST(int{from_arguments<query>(arguments(-128)).level} == -128);
  BOOST_TEST(int{from_arguments<query>(arguments(2.0)).level} == 2);
  for (const auto& level :
       {json(128), json(-129), json(1e300), json(UINT64_MAX), json("1")})
    BOOST_TEST(code_for(arguments(level)) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_of_another_type_is_refused) {
  BOOST_TEST(code_for(json::object()) == "invalid_argument");
  auto args = arguments(1);
  args["city"] = 5;
  BOOST_TEST(code_for(args) == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
