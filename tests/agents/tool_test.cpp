// Tools as values: valid and refused descriptions, and the registry by name.

#include "troupe/agents/tool.hpp"

#include "troupe/contexts/lanes/host.hpp"

#include "../await.hpp"
#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(tools)

namespace {

tool_options counting(std::string name = "count") {
  tool_options options;
  options.name = std::move(name);
  options.description = "Counts words.";
  options.run = [](const json& args, tool_context&) {
    return json(args.at("text").get<std::string>().size());
  };
  return options;
}

const std::vector<std::string> bad_names
  = {"", "1st", "two words", "-b", "a.b", "\xff", std::string(257, 'a')};

} // namespace

BOOST_DATA_TEST_CASE(a_name_that_no_model_could_call_is_refused,
                     data::make(bad_names),
                     name) {
  BOOST_TEST(code_thrown_by([&] { tool made(counting(name)); })
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_name_may_have_hyphens_after_its_first_character) {
  BOOST_TEST(tool(counting("get-sum_2")).name() == "get-sum_2");
}

BOOST_AUTO_TEST_CASE(a_tool_needs_a_function_and_an_object_schema) {
  BOOST_TEST(code_thrown_by([] {
               auto options = counting();
               options.run = nullptr;
               tool made(std::move(options));
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] {
               auto options = counting();
               options.parameters = json::array();
               tool made(std::move(options));
             })
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(a_tool_is_what_it_was_made_from) {
  const tool made(counting());
  const auto copy = made;
  BOOST_TEST(copy.name() == "count");
  BOOST_TEST(copy.description() == "Counts words.");
  BOOST_TEST(to_text(copy.parameters())
             == R"({"properties":{},"type":"object"})");
  const run_facts facts;
  tool_context context(facts, "writer", state(), "c1", {});
  const json args = {{"text", "owl"}};
  BOOST_TEST(to_text(now(copy.options().run(args, context)).value()) == "3");
  BOOST_TEST(context.function_call_id() == "c1");
}

BOOST_AUTO_TEST_CASE(a_registry_finds_tools_by_name) {
  const auto registry
    = make_registry({tool(counting("b")), tool(counting("a"))});
  BOOST_TEST(registry.size() == 2U);
  BOOST_TEST(registry.at("a").name() == "a");
  BOOST_TEST((registry.find(std::string_view("c")) == registry.end()));
}

BOOST_AUTO_TEST_CASE(a_registry_refuses_a_name_that_comes_twice) {
  BOOST_TEST(code_thrown_by([] {
               make_registry({tool(counting("a")), tool(counting("a"))});
             })
             == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
