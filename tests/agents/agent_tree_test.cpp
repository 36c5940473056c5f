// Trees of agents: allowed transfers, and the agent that has the turn.

#include "troupe/agents/turns/tree.hpp"
#include "troupe/models/scripted_model.hpp"

#include "../outcome.hpp"
#include <boost/test/unit_test.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(agent_trees)

namespace {

const model_ptr silent = std::make_shared<scripted_model>(script());

agent talker_of(llm_options options, std::vector<agent> below = {}) {
  options.model = silent;
  return llm(std::move(options), std::move(below));
}

agent talker(const std::string& name, std::vector<agent> below = {}) {
  return talker_of({.name = name}, std::move(below));
}

/// `root` over `a` (over `a1` and `a2`) and `b`.
agent family(llm_options a = {}, llm_options a1 = {}) {
  a.name = "a";
  a1.name = "a1";
  return talker(
    "root",
    {talker_of(std::move(a), {talker_of(std::move(a1)), talker("a2")}),
     talker("b")});
}

std::string targets(const agent& root, std::string_view of) {
  const agent_tree tree(root);
  const auto* transfers = tree.transfers_of(of);
  std::string names;
  if (transfers != nullptr)
    for (const auto& target : transfers->targets)
      names += target.name() + " ";
  return names;
}

std::string turn(const agent& root, const std::vector<std::string>& authors) {
  event_log log;
  for (const auto& author : authors) {
    event said(content("", {part("x")}));
    said.author = author;
    log.push_back(std::make_shared<const event>(std::move(said)));
  }
  const agent_tree tree(root);
  const auto* next = tree.next_turn(log.slice(), content());
  return (next != nullptr ? *next : tree.root()).name();
}

} // namespace

BOOST_AUTO_TEST_CASE(an_llm_hands_over_to_those_below_above_and_beside_it) {
  BOOST_TEST(targets(family(), "root") == "a b ");
  BOOST_TEST(targets(family(), "a") == "a1 a2 root b ");
  BOOST_TEST(targets(family(), "a1") == "a a2 ");
  BOOST_TEST(targets(family(), "b") == "root a ");
}

BOOST_AUTO_TEST_CASE(the_ways_up_and_to_the_side_can_be_closed) {
  BOOST_TEST(targets(family({.disallow_transfer_to_parent = true}), "a")
             == "a1 a2 b ");
  BOOST_TEST(targets(family({.disallow_transfer_to_peers = true}), "a")
             == "a1 a2 root ");
  BOOST_TEST(targets(family({},
                            {.disallow_transfer_to_parent = true,
                             .disallow_transfer_to_peers = true}),
                     "a1")
             == "");
}

BOOST_AUTO_TEST_CASE(only_llm_agents_hand_over) {
  const auto root = sequential("root", {talker("a"), talker("b")});
  BOOST_TEST(targets(root, "a") == "");
  BOOST_TEST(!root.transfers());
  const auto mixed = talker("root", {sequential("steps", {talker("a")})});
  BOOST_TEST(mixed.transfers());
  BOOST_TEST(targets(mixed, "root") == "steps ");
  BOOST_TEST(targets(mixed, "steps") == "");
  BOOST_TEST(targets(mixed, "a") == "");
}

BOOST_AUTO_TEST_CASE(the_hand_over_names_its_targets) {
  const agent_tree tree(talker(
    "root", {talker_of({.name = "sales", .description = "sells things"})}));
  const auto& transfers = *tree.transfers_of("root");
  BOOST_TEST(transfers.hint.find(
               "\n\n\nAgent name: sales\nAgent description: sells things\n\n\n")
               != std::string::npos,
             transfers.hint);
  BOOST_TEST(code_of(transfers.hand_over.check({{"agent_name", "sales"}}))
             == "ok");
  BOOST_TEST(code_of(transfers.hand_over.check({{"agent_name", "root"}}))
             == "invalid_argument");
}

BOOST_AUTO_TEST_CASE(the_last_agent_that_spoke_goes_on) {
  BOOST_TEST(turn(family(), {"user"}) == "root");
  BOOST_TEST(turn(family(), {"user", "root", "a1", "user"}) == "a1");
  BOOST_TEST(turn(family(), {"user", "a1", "root", "user"}) == "root");
  BOOST_TEST(turn(family(), {"user", "b", "stranger", "user"}) == "b");
}

BOOST_AUTO_TEST_CASE(
  who_cannot_hand_over_to_its_parent_does_not_keep_the_turn) {
  const auto closed = family({.disallow_transfer_to_parent = true});
  // The agents below it do not keep the turn either.
  BOOST_TEST(turn(closed, {"user", "b", "a", "user"}) == "b");
  BOOST_TEST(turn(closed, {"user", "a1", "user"}) == "root");
  // A root that is no LLM agent always gets the turn.
  BOOST_TEST(turn(sequential("root", {talker("x", {talker("y")})}),
                  {"user", "y", "user"})
             == "root");
}

BOOST_AUTO_TEST_CASE(who_asked_gets_the_answer) {
  event_log log;
  event asked(content("model", {part(function_call{"c1", "ask", json()})}));
  asked.author = "a1";
  event other(content("model", {part("x")}));
  other.author = "b";
  event answer(
    content("user", {part(function_response{"c1", "ask", json::object()})}));
  answer.author = "user";
  for (auto* each : {&asked, &other, &answer})
    log.push_back(std::make_shared<const event>(*each));
  const agent_tree tree(family());
  BOOST_TEST(tree.next_turn(log.slice(), answer.content)->name() == "a1");
}

BOOST_AUTO_TEST_CASE(the_name_of_the_hand_over_is_taken) {
  tool_options options;
  options.name = std::string(transfer_tool_name);
  options.run = [](const json&, tool_context&) -> json { return 1; };
  BOOST_TEST(
    code_thrown_by([&] { talker_of({.name = "a", .tools = {tool(options)}}); })
    == "invalid_argument");
}

BOOST_AUTO_TEST_SUITE_END()
