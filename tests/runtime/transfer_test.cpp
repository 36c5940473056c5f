// Agents that transfer to each other in one run, and the agent that gets the
// next message.

#include "agent_fixture.hpp"
#include <boost/test/unit_test.hpp>

#include <string>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(transfers)

namespace {

scripted_reply over_to(const std::string& name) {
  return calling("transfer_to_agent", {{"agent_name", name}});
}

agent talker(const std::string& name,
             const model_ptr& model,
             std::vector<agent> below = {}) {
  return llm({.name = name, .model = model}, std::move(below));
}

} // namespace

BOOST_AUTO_TEST_CASE(a_model_hands_over_to_a_sub_agent) {
  agent_fixture on;
  const auto model
    = scripted({{"root", {over_to("a")}}, {"a", {{.text = "mine"}}}});
  const auto root = talker("root", model, {talker("a", model)});
  BOOST_TEST(on.perform(root) == "root= root= a=mine | ok");
  const auto events = on.events(on.key);
  BOOST_TEST(events[2]->actions.transfer_to_agent == "a");
  // The next message goes to the agent that has the conversation.
  BOOST_TEST(on.perform(root) == "a=mine | ok");
}

BOOST_AUTO_TEST_CASE(agents_hand_over_to_peers_and_back_to_their_parent) {
  agent_fixture on;
  const auto model = scripted({{"root", {over_to("a"), {.text = "end"}}},
                               {"a", {over_to("b")}},
                               {"b", {over_to("root")}}});
  const auto root
    = talker("root", model, {talker("a", model), talker("b", model)});
  BOOST_TEST(on.perform(root) == "root= root= a= a= b= b= root=end | ok");
}

BOOST_AUTO_TEST_CASE(hand_overs_do_not_deepen_the_stack) {
  agent_fixture on;
  std::vector<scripted_reply> to_a(100, over_to("a"));
  to_a.push_back({.text = "end"});
  const auto model = scripted({{"root", to_a}, {"a", {over_to("root")}}});
  const auto root = talker("root", model, {talker("a", model)});
  const auto line = on.perform(root, {.agent_depth_max = 2});
  BOOST_TEST(line.ends_with("root=end | ok"), line);
}

BOOST_AUTO_TEST_CASE(a_hand_over_to_a_stranger_is_told_to_the_model) {
  agent_fixture on;
  const auto model
    = scripted({{"root", {over_to("nobody"), {.text = "sorry"}}}});
  const auto root = talker("root", model, {talker("a", model)});
  BOOST_TEST(on.perform(root) == "root= root= root=sorry | ok");
  const auto told = responses(on, on.key)[0].value("error", "");
  BOOST_TEST(told.find("agent_name") != std::string::npos, told);
}

BOOST_AUTO_TEST_CASE(an_own_tool_cannot_hand_over_to_a_forbidden_agent) {
  agent_fixture on;
  const auto model
    = scripted({{"root", {over_to("a")}}, {"a", {calling("jump")}}});
  const auto jump = tool_of("jump", [](const json&, tool_context& context) {
    context.actions().transfer_to_agent = "b";
    return json();
  });
  const auto a = llm({.name = "a",
                      .model = model,
                      .tools = {jump},
                      .disallow_transfer_to_peers = true});
  const auto root = talker("root", model, {a, talker("b", model)});
  BOOST_TEST(on.perform(root) == "root= root= a= a= | invalid_argument");
  BOOST_TEST(agent_fixture::last_reason().find("'a' cannot hand over to 'b'")
             != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_workflow_below_takes_over) {
  agent_fixture on;
  const auto model = scripted({{"root", {over_to("steps")}}});
  const auto root = talker(
    "root", model, {sequential("steps", {says("one", "1"), says("two", "2")})});
  BOOST_TEST(on.perform(root) == "root= root= one=1 two=2 | ok");
  // The workflow cannot transfer, so the root gets the next message.
  BOOST_TEST(on.perform(root) == "root= root= one=1 two=2 | ok");
}

BOOST_AUTO_TEST_CASE(who_takes_over_takes_the_place_in_a_sequence) {
  agent_fixture on;
  const auto model
    = scripted({{"head", {over_to("a")}}, {"a", {{.text = "mine"}}}});
  const auto root = sequential(
    "root", {talker("head", model, {talker("a", model)}), says("next", "n")});
  BOOST_TEST(on.perform(root) == "head= head= a=mine next=n | ok");
  BOOST_TEST(on.perform(root) == "head= head= a=mine next=n | ok");
}

BOOST_AUTO_TEST_CASE(callbacks_of_who_hands_over_come_before_the_next_agent) {
  agent_fixture on;
  const auto model
    = scripted({{"root", {over_to("a")}}, {"a", {{.text = "mine"}}}});
  const auto root = llm(
    {.name = "root", .model = model, .after_agent = {[](callback_context&) {
                                       return std::optional(
                                         content("model", {part("bye")}));
                                     }}},
    {talker("a", model)});
  BOOST_TEST(on.perform(root) == "root= root= root=bye a=mine | ok");
}

BOOST_AUTO_TEST_SUITE_END()
