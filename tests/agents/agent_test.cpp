// Agents as values: valid descriptions, and descriptions that are refused.

#include "troupe/agents/agent.hpp"

#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace troupe;
using namespace troupe::testing;
namespace data = boost::unit_test::data;

BOOST_AUTO_TEST_SUITE(agents)

namespace {

model_ptr some_model(std::string name = "scripted") {
  return std::make_shared<scripted_model>(script(), std::move(name));
}

llm_options writer(std::string name = "writer") {
  llm_options options;
  options.name = std::move(name);
  options.model = some_model();
  return options;
}

agent_run nothing(invocation_context&) {
  co_return;
}

agent leaf(std::string name) {
  return custom(std::move(name), nothing);
}

tool tool_named(std::string name) {
  tool_options options;
  options.name = std::move(name);
  options.run = [](const json&, tool_context&) { return json(); };
  return tool(std::move(options));
}

const std::vector<std::string> bad_names = {
  "",
  "user",
  "1st",
  "two words",
  "a-b",
  "a.b",
  "a/b",
  "a\n",
  "\xff",
  std::string(257, 'a'),
};

const std::vector<std::string> good_names
  = {"a", "_", "writer_2", "User", "größe", "作家", std::string(256, 'a')};

const std::vector<std::string> bad_output_keys = {"app:",
                                                  "__draft",
                                                  "temp:__draft",
                                                  "app:user:draft",
                                                  "\xff",
                                                  std::string(257, 'k')};

std::string model_name(const agent& asked) {
  return std::get<llm_options>(asked.kind()).model->name();
}

} // namespace

BOOST_DATA_TEST_CASE(a_name_that_is_no_identifier_is_refused,
                     data::make(bad_names),
                     name) {
  const std::vector<agent> none;
  for (const auto& code : {code_thrown_by([&] { llm(writer(name)); }),
                           code_thrown_by([&] { sequential(name, none); }),
                           code_thrown_by([&] { parallel(name, none); }),
                           code_thrown_by([&] {
                             loop({name, {}, {}}, none);
                           }),
                           code_thrown_by([&] { leaf(name); })})
    BOOST_TEST(code == "invalid_argument");
}

BOOST_DATA_TEST_CASE(an_identifier_is_a_name, data::make(good_names), name) {
  BOOST_TEST(llm(writer(name)).name() == name);
  BOOST_TEST(leaf(name).name() == name);
}

BOOST_AUTO_TEST_CASE(names_are_unique_in_the_whole_tree) {
  const auto deep = sequential("outer", {loop({"inner", {}, 2}, {leaf("x")})});
  BOOST_TEST(code_thrown_by([] { sequential("a", {leaf("a")}); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] {
               parallel("a", {leaf("b"), leaf("b")});
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] {
               sequential("a", {leaf("x"), deep});
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] { sequential("inner", {deep}); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] {
               sequential("a", {deep, deep});
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([&] {
               sequential("a", {leaf("y"), deep});
             })
             == "ok");
}

// A tree does not change the agents that it is made of.
BOOST_AUTO_TEST_CASE(an_agent_may_be_part_of_several_trees) {
  const auto shared = leaf("shared");
  const auto first = sequential("a", {shared});
  const auto second = sequential("a", {shared, leaf("b")});
  BOOST_TEST((first.sub_agents()[0] == second.sub_agents()[0]));
  BOOST_TEST((first != second));
  BOOST_TEST((first == agent(first)));
}

BOOST_AUTO_TEST_CASE(sub_agents_stay_in_order) {
  const auto tree = parallel("all", {leaf("c"), leaf("a"), leaf("b")});
  std::string order;
  for (const auto& below : tree.sub_agents())
    order += below.name();
  BOOST_TEST(order == "cab");
}

BOOST_AUTO_TEST_CASE(what_can_never_run_is_refused) {
  BOOST_TEST(code_thrown_by([] {
               loop({"l", {}, 0}, {leaf("a")});
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] {
               parallel(parallel_options{.name = "p", .lanes_max = 0},
                        {leaf("a")});
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] { custom("c", nullptr); })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] {
               auto options = writer();
               options.model = nullptr;
               llm(std::move(options));
             })
             == "invalid_argument");
  BOOST_TEST(code_thrown_by([] { loop({"l", {}, 1}, {leaf("a")}); }) == "ok");
  BOOST_TEST(code_thrown_by([] { loop({"l", {}, {}}, {leaf("a")}); }) == "ok");
}

BOOST_DATA_TEST_CASE(an_output_key_is_checked_like_any_key,
                     data::make(bad_output_keys),
                     key) {
  auto options = writer();
  options.output_key = key;
  BOOST_TEST(code_thrown_by([&] { llm(options); }) == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(an_output_key_may_have_any_scope) {
  for (const auto* key :
       {"", "draft", "app:draft", "user:draft", "temp:draft"}) {
    auto options = writer();
    options.output_key = key;
    BOOST_TEST(code_thrown_by([&] { llm(options); }) == "ok");
  }
}

BOOST_AUTO_TEST_CASE(two_tools_of_one_name_are_refused) {
  auto options = writer();
  options.tools
    = {tool_named("count"), tool_named("find"), tool_named("count")};
  BOOST_TEST(code_thrown_by([&] { llm(options); }) == "invalid_argument");
  options.tools.pop_back();
  BOOST_TEST(code_thrown_by([&] { llm(options); }) == "ok");
}

BOOST_AUTO_TEST_CASE(another_model_replaces_all_of_a_tree) {
  const auto tree = sequential("root",
                               {llm(writer("a")),
                                loop({"again", "twice", 2}, {llm(writer("b"))}),
                                leaf("c")});
  const auto copy = tree.with_model(some_model("other"));
  BOOST_TEST(model_name(copy.sub_agents()[0]) == "other");
  BOOST_TEST(model_name(copy.sub_agents()[1].sub_agents()[0]) == "other");
  BOOST_TEST(copy.name() == "root");
  BOOST_TEST(copy.sub_agents()[1].description() == "twice");
  BOOST_TEST(copy.sub_agents()[2].name() == "c");
  BOOST_TEST(model_name(tree.sub_agents()[0]) == "scripted");
  BOOST_TEST(model_name(tree.sub_agents()[1].sub_agents()[0]) == "scripted");
  BOOST_TEST(model_name(llm(writer()).with_model(some_model("other")))
             == "other");
}

BOOST_AUTO_TEST_CASE(an_instruction_is_a_template_or_a_provider) {
  using provider = instruction_provider;
  const auto is_template = [](const instruction& made) {
    return std::holds_alternative<std::string>(made.source());
  };
  BOOST_TEST(is_template("Write"));
  BOOST_TEST(is_template(std::string("Write")));
  BOOST_TEST(is_template({}));
  BOOST_TEST(!is_template([](const readonly_context&) { return "Write"; }));
  BOOST_TEST(!is_template(provider([](const auto&) { return std::string(); })));
}

// -- extent of the history ----

BOOST_AUTO_TEST_CASE(a_tree_reads_as_much_as_its_widest_agents) {
  auto newest = writer("newest");
  newest.contents_max = 20;
  auto summed = writer("summed");
  summed.include_contents = include_contents::since_summary;
  auto alone = writer("alone");
  alone.include_contents = include_contents::none;
  const auto tree
    = loop({.name = "tree"}, {llm(newest, {llm(alone)}), llm(summed)});
  BOOST_CHECK(tree.reads_itself() == history_extent::none());
  BOOST_CHECK(
    tree.reads()
    == (history_extent::newest(20) | history_extent::since_summary()));
  BOOST_TEST(!tree.reads().covers(history_extent::all()));
  BOOST_TEST(!tree.reads().covers(history_extent::newest(21)));
  BOOST_TEST(tree.reads().covers(history_extent::newest(20)));
  // By default an agent reads the whole history.
  BOOST_CHECK(leaf("leaf").reads() == history_extent::all());
  BOOST_CHECK(llm(writer()).reads() == history_extent::all());
  BOOST_CHECK(sequential("all", {tree, leaf("leaf")}).reads().is_whole);
  BOOST_CHECK(tree.with_model(some_model()).reads() == tree.reads());
}

BOOST_AUTO_TEST_CASE(a_bound_that_has_no_effect_is_refused) {
  auto zero = writer();
  zero.contents_max = 0;
  BOOST_CHECK_THROW(llm(zero), error);
  auto twice = writer();
  twice.contents_max = 5;
  twice.include_contents = include_contents::since_summary;
  BOOST_CHECK_THROW(llm(twice), error);
}

BOOST_AUTO_TEST_SUITE_END()
