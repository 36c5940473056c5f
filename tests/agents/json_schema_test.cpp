// Data checked against a schema: accepted data, and the messages for the rest.

#include "troupe/agents/json_schema.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(json_schemas)

namespace {

const json_schema trip(json::parse(R"({
  "type": "object",
  "properties": {
    "city": {"type": "string", "pattern": "^[A-Z]"},
    "days": {"type": "integer", "minimum": 1},
    "stops": {"type": "array", "items": {"enum": ["sea", "sun"]}}
  },
  "required": ["city"]
})"));

const std::vector<std::string> no_schemas
  = {R"("text")",
     "[]",
     R"({"type": 5})",
     R"({"type": "OBJECT"})",
     R"({"properties": []})",
     R"({"required": "city"})",
     R"({"$ref": "http://elsewhere.example/schema"})",
     R"({"$ref": "#"})",
     R"({"allOf": [{"type": "object"}, {"not": {"$ref": "#"}}]})",
     R"({"properties": {"a": {"$ref": "#/definitions/a%20b"}},
         "definitions": {"a b": {"anyOf": [{"$ref": "#/definitions/c"}]},
                         "c": {"if": {"$ref": "#/definitions/a b"}}}})"};

std::string reason(const json& data) {
  return reason_of(trip.check(data));
}

} // namespace

BOOST_AUTO_TEST_CASE(what_fits_is_well) {
  BOOST_TEST(code_of(trip.check({{"city", "Rome"}})) == "ok");
  BOOST_TEST(
    code_of(trip.check({{"city", "Rome"}, {"days", 2}, {"stops", {"sea"}}}))
    == "ok");
}

BOOST_AUTO_TEST_CASE(every_place_that_does_not_fit_is_named) {
  const auto why
    = reason({{"days", 0}, {"stops", {"sea", "moon"}}, {"city", "rome"}});
  BOOST_TEST(why.find("/city") != std::string::npos, why);
  BOOST_TEST(why.find("/days") != std::string::npos, why);
  BOOST_TEST(why.find("/stops/1") != std::string::npos, why);
  BOOST_TEST(reason(json::object()).find("'city'") != std::string::npos);
  BOOST_TEST(code_of(trip.check(json::array())) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_schema_may_refer_to_itself_for_the_parts) {
  const json_schema tree(json::parse(R"({
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
    "additionalProperties": false
  })"));
  BOOST_TEST(code_of(tree.check({{"left", {{"right", json::object()}}}}))
             == "ok");
  BOOST_TEST(code_of(tree.check({{"left", {{"right", 1}}}}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(long_text_is_not_matched_against_a_pattern) {
  BOOST_TEST(code_of(trip.check({{"city", std::string(1'000'000, 'A')}}))
             == "invalid_argument");
}

BOOST_DATA_TEST_CASE(what_is_no_schema_is_refused,
                     data::make(no_schemas),
                     text) {
  BOOST_TEST(code_thrown_by([&] { json_schema made(json::parse(text)); })
             == "invalid_argument");
}

// A property may have the name `type`.
BOOST_AUTO_TEST_CASE(types_of_the_gemini_api_are_named) {
  const auto why = [](const char* text) {
    try {
      const json_schema made(json::parse(text));
    } catch (const error& failure) {
      return failure.message();
    }
    return std::string("none");
  };
  BOOST_TEST(why(R"({"type": "OBJECT"})")
             == "not a JSON Schema: /type is 'OBJECT', a type of the Gemini "
                "API; write 'object'");
  BOOST_TEST(why(R"({"properties": {"type": {"type": "INTEGER"}}})")
             == "not a JSON Schema: /properties/type/type is 'INTEGER', a type "
                "of the Gemini API; write 'integer'");
  BOOST_TEST(why(R"({"type": "Object"})").find("Gemini") == std::string::npos);
  BOOST_TEST(why(R"({"type": "string", "enum": ["OBJECT"]})") == "none");
}

BOOST_AUTO_TEST_SUITE_END()
