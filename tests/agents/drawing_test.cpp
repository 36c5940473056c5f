// Drawings of agents: as text, as a graph, and in the form of ADK.

#include "troupe/agents/drawing.hpp"

#include "troupe/agents/agent_tool.hpp"
#include "troupe/agents/drawings/adk_form.hpp"
#include "troupe/agents/drawings/dot_text.hpp"
#include "troupe/agents/drawings/line.hpp"
#include "troupe/agents/drawings/tree_text.hpp"
#include "troupe/models/scripted_model.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(drawing)

namespace {

model_ptr named(std::string name) {
  return std::make_shared<scripted_model>(script{{"*", {{.text = "ok"}}}},
                                          std::move(name));
}

agent writes(const std::string& name, std::vector<agent> below = {}) {
  return llm({.name = name, .model = named("m")}, std::move(below));
}

tool makes(const std::string& name) {
  return tool(
    {.name = name, .run = [](const json&, tool_context&) { return json(); }});
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A set that knows these tools.
class known_set : public toolset {
public:
  known_set(std::string name, std::vector<tool> known)
    : name_(std::move(name)),
      known_(std::make_shared<const std::vector<tool>>(std::move(known))) {}

  const std::string& name() const noexcept override { return name_; }

  // A drawing never asks.
  pending<tool_list> tools(std::stop_token) override {
    throw error(errc::internal, "the set was asked");
  }

  tool_list known_tools() const override { return known_; }

private:
  const std::string name_;
  const tool_list known_;
};

// An agent of each kind, with each relation.
agent whole_tree() {
  auto critic = llm({.name = "critic",
                     .model = named("m"),
                     .tools = {exit_loop()},
                     .include_contents = include_contents::none});
  auto refine = loop({.name = "refine", .max_iterations = 3},
                     {std::move(critic), writes("reviser")});
  auto reviews = sequential("reviews", {writes("writer"), std::move(refine)});
  auto booker
    = llm({.name = "booker", .mode = agent_mode::task, .model = named("m")});
  auto summer = llm(
    {.name = "summer", .mode = agent_mode::single_turn, .model = named("m")});
  auto asks = makes("pay").options();
  asks.require_confirmation = true;
  return llm(
    {.name = "desk",
     .description = "The desk.",
     .model = named("big"),
     .instruction = "Route.",
     .tools = {makes("look_up"), tool(asks), agent_tool(writes("helper"))},
     .toolsets = {std::make_shared<known_set>(
       "npx", std::vector{makes("read"), makes("write")})},
     .output_key = "answer"},
    {std::move(reviews), std::move(booker), std::move(summer)});
}

// A workflow, as one is drawn: a start, a route, a default, a join.
drawings::node workflow() {
  using namespace drawings;
  const auto step = [](std::string name, node_kind kind) {
    node made;
    made.id = name;
    made.name = std::move(name);
    made.kind = kind;
    return made;
  };
  auto made = step("flow", node_kind::workflow);
  made.order = flow::routed;
  made.steps = {step("START", node_kind::start),
                step("check", node_kind::function),
                step("write", node_kind::llm),
                step("gather", node_kind::join)};
  made.edges = {{0, 1}, {1, 2, "ok"}, {1, 3, "", true}, {2, 3}};
  return made;
}

} // namespace

// -- text ----

BOOST_AUTO_TEST_CASE(text_shows_each_kind_with_its_flow_and_relations) {
  BOOST_TEST(
    to_text(whole_tree())
    == "desk (LLM, model big, writes answer)\n"
       "├─ tool: look_up\n"
       "├─ tool: pay (asks for permission)\n"
       "├─ calls: helper (LLM, model m)\n"
       "├─ toolset: npx (read, write)\n"
       "├─ hands over to: reviews (sequence)\n"
       "│  ├─ 1. writer (LLM, model m)\n"
       "│  └─ 2. refine (loop, at most 3 rounds)\n"
       "│     ├─ 1. critic (LLM, model m, sees the current turn only)\n"
       "│     │  └─ tool: exit_loop\n"
       "│     └─ 2. reviser (LLM, model m)\n"
       "├─ gives tasks to: booker (LLM, model m, mode task)\n"
       "└─ calls: summer (LLM, model m, mode single_turn)\n");
}

BOOST_AUTO_TEST_CASE(text_shows_lanes_and_their_rules) {
  BOOST_TEST(to_text(parallel("both", {writes("left"), writes("right")}))
             == "both (parallel)\n"
                "├─ lane: left (LLM, model m)\n"
                "└─ lane: right (LLM, model m)\n");
  const auto strict = parallel({.name = "both",
                                .lanes_max = 2,
                                .on_failure = lane_failures::quorum,
                                .quorum = 1,
                                .lane_timeout = std::chrono::seconds(2),
                                .isolate_temp = true},
                               {writes("left")});
  BOOST_TEST(to_text(strict)
             == "both (parallel, at most 2 at once, needs 1 successes, each at "
                "most 2000 ms, own copies of temp:)\n"
                "└─ lane: left (LLM, model m)\n");
  const auto each = map({.name = "each",
                         .items_key = "topics",
                         .output_key = "notes",
                         .on_failure = lane_failures::collect},
                        writes("one"));
  BOOST_TEST(to_text(each)
             == "each (map, each item of topics, continues after failures, "
                "writes notes)\n"
                "└─ each item: one (LLM, model m)\n");
}

BOOST_AUTO_TEST_CASE(text_shows_endless_loops_and_code) {
  BOOST_TEST(
    to_text(loop({.name = "again", .max_iterations = 1}, {writes("one")}))
    == "again (loop, at most 1 round)\n"
       "└─ 1. one (LLM, model m)\n");
  BOOST_TEST(to_text(loop({.name = "again"}, {writes("one")}))
             == "again (loop, until a step escalates)\n"
                "└─ 1. one (LLM, model m)\n");
  const auto own = custom("own",
                          [](invocation_context&) -> agent_run { co_return; },
                          {writes("part")});
  BOOST_TEST(to_text(own)
             == "own (custom)\n"
                "└─ may run: part (LLM, model m)\n");
}

BOOST_AUTO_TEST_CASE(text_shows_the_options_of_tools) {
  tool_options options{
    .name = "slow", .run = [](const json&, tool_context&) { return json(); }};
  options.timeout = std::chrono::milliseconds(500);
  options.calls_max = 2;
  options.on_failure = tool_failure::end_run;
  options.long_running = true;
  options.skip_summarization = true;
  const tool only_prepares(
    {.name = "hints", .prepare = [](readonly_context&, model_request&) {}});
  BOOST_TEST(
    to_text(llm({.name = "a",
                 .model = named("m"),
                 .tools = {tool(options), only_prepares}}))
    == "a (LLM, model m)\n"
       "├─ tool: slow (long-running, its result is the answer, a failure ends "
       "the run, at most 500 ms, at most 2 calls at once)\n"
       "└─ tool: hints (prepares requests)\n");
}

BOOST_AUTO_TEST_CASE(a_set_that_knows_no_tool_is_drawn_without_a_question) {
  const auto set
    = std::make_shared<known_set>("https://h/mcp", std::vector<tool>());
  BOOST_TEST(to_text(llm({.name = "a", .model = named("m"), .toolsets = {set}}))
             == "a (LLM, model m)\n"
                "└─ toolset: https://h/mcp (known when it runs)\n");
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_a_tool_twice_is_drawn_once) {
  const auto helper = writes("helper", {writes("second")});
  const auto both = sequential(
    "both",
    {llm({.name = "x", .model = named("m"), .tools = {agent_tool(helper)}}),
     llm({.name = "y", .model = named("m"), .tools = {agent_tool(helper)}})});
  BOOST_TEST(to_text(both)
             == "both (sequence)\n"
                "├─ 1. x (LLM, model m)\n"
                "│  └─ calls: helper (LLM, model m)\n"
                "│     └─ hands over to: second (LLM, model m)\n"
                "└─ 2. y (LLM, model m)\n"
                "   └─ calls: helper (LLM, model m, drawn above)\n");
  const auto graph = to_dot(both);
  BOOST_TEST(has(graph, "\"x\" -> \"helper\""));
  BOOST_TEST(has(graph, "\"y\" -> \"helper\""));
  BOOST_TEST(!has(graph, "helper (2)"));
}

// Agents that share agents as tools are a graph with exponentially many paths.
BOOST_AUTO_TEST_CASE(shared_agents_do_not_multiply_a_drawing) {
  auto below = writes("a0");
  for (int depth = 1; depth < 40; ++depth) {
    const auto suffix = std::to_string(depth);
    auto left = llm({.name = "l" + suffix,
                     .model = named("m"),
                     .tools = {agent_tool(below)}});
    auto right = llm({.name = "r" + suffix,
                      .model = named("m"),
                      .tools = {agent_tool(below)}});
    below = llm(
      {.name = "a" + suffix,
       .model = named("m"),
       .tools = {agent_tool(std::move(left)), agent_tool(std::move(right))}});
  }
  BOOST_TEST(to_text(below).size() < 40'000U);
  BOOST_TEST(to_dot(below).size() < 40'000U);
}

BOOST_AUTO_TEST_CASE(text_shows_routes_of_a_workflow) {
  BOOST_TEST(drawings::to_tree_text(workflow())
             == "flow (workflow)\n"
                "├─ START (start) → check\n"
                "├─ check (function) → write on ok, gather by default\n"
                "├─ write (LLM) → gather\n"
                "└─ gather (join)\n");
}

// -- lines ----

BOOST_AUTO_TEST_CASE(a_line_is_short_and_safe_for_a_terminal) {
  using drawings::line_of;
  BOOST_TEST(line_of("  two\n\t words ", 80) == "two words");
  BOOST_TEST(line_of("a\x1b[2Jb", 80) == "a\\x1b[2Jb");
  BOOST_TEST(line_of("a\u202eb", 80) == "a\\u202eb");
  BOOST_TEST(line_of("a\xff", 80) == "a\\xff");
  BOOST_TEST(line_of("größer", 4) == "größ…");
  BOOST_TEST(line_of("größer", 6) == "größer");
  BOOST_TEST(line_of("ab cd", 3) == "ab…");
  BOOST_TEST(line_of("", 5) == "");
}

// -- graphs ----

BOOST_AUTO_TEST_CASE(a_graph_has_a_node_for_each_agent_and_tool) {
  const auto graph = to_dot(whole_tree());
  BOOST_TEST(graph.starts_with("digraph \"desk\" {\n"));
  for (const auto* edge :
       {"\"desk\" -> \"look_up\" [style=dashed]",
        "\"desk\" -> \"npx\" [style=dashed]",
        "\"desk\" -> \"helper\" [label=\"calls\"] "
        "[style=dashed]",
        "\"desk\" -> \"reviews\" [label=\"hands over to\"]",
        "\"desk\" -> \"booker\" [label=\"gives tasks to\"]",
        "\"desk\" -> \"summer\" [label=\"calls\"] "
        "[style=dashed]",
        "\"reviews\" -> \"writer\"",
        "\"writer\" -> \"refine\"",
        "\"refine\" -> \"critic\"",
        "\"critic\" -> \"reviser\"",
        "\"reviser\" -> \"critic\" [label=\"again, at most 3 "
        "rounds\"]"})
    BOOST_TEST(has(graph, std::string("  ") + edge + "\n"), edge);
  BOOST_TEST(has(graph, "subgraph \"cluster reviews\" {"));
  BOOST_TEST(has(graph, "  subgraph \"cluster refine\" {"));
  BOOST_TEST(has(graph, "tooltip=\"The desk.\""));
}

BOOST_AUTO_TEST_CASE(a_graph_shows_lanes_side_by_side) {
  const auto graph
    = to_dot(parallel("both", {writes("left"), writes("right")}));
  BOOST_TEST(has(graph, "\"both\" -> \"left\"\n"));
  BOOST_TEST(has(graph, "\"both\" -> \"right\"\n"));
  BOOST_TEST(!has(graph, "\"left\" -> \"right\""));
  BOOST_TEST(
    has(to_dot(map({.name = "each", .items_key = "app:t"}, writes("one"))),
        "\"each\" -> \"one\" [label=\"each item of app:t\"]"));
}

BOOST_AUTO_TEST_CASE(equal_tools_are_one_node_and_others_get_a_number) {
  auto asks = makes("search").options();
  asks.require_confirmation = true;
  const auto both = sequential(
    "both",
    {llm({.name = "x", .model = named("m"), .tools = {makes("search")}}),
     llm({.name = "y", .model = named("m"), .tools = {makes("search")}}),
     llm({.name = "z", .model = named("m"), .tools = {tool(asks)}}),
     llm({.name = "u", .model = named("m"), .tools = {makes("x")}})});
  const auto graph = to_dot(both);
  BOOST_TEST(has(graph, "\"x\" -> \"search\" "));
  BOOST_TEST(has(graph, "\"y\" -> \"search\" "));
  BOOST_TEST(has(graph, "\"z\" -> \"search (2)\" "));
  // A tool with the name of an agent.
  BOOST_TEST(has(graph, "\"u\" -> \"x (2)\" "));
}

BOOST_AUTO_TEST_CASE(texts_in_a_graph_are_escaped_and_shortened) {
  const auto set = std::make_shared<known_set>("C:\\srv \"a\"\n<b>&amp;",
                                               std::vector<tool>());
  const auto graph
    = to_dot(llm({.name = "a",
                  .description = "Says \"<b>\"\\N & " + std::string(5'000, 'x'),
                  .model = named("<b>größe</b>\x1b"),
                  .toolsets = {set}}));
  BOOST_TEST(has(graph, "\"a\" -> \"C:/srv \\\"a\\\" <b>&amp;\" "));
  BOOST_TEST(has(graph,
                 "label=\"C:\\\\srv \\\"a\\\" <b>&amp;amp;\\ntoolset\\nknown "
                 "when it runs\""));
  BOOST_TEST(has(graph, "model <b>größe</b>\\\\x1b"));
  BOOST_TEST(has(graph, "tooltip=\"Says \\\"<b>\\\"∖N &amp; xxx"));
  BOOST_TEST(graph.size() < 3'000U);
  BOOST_TEST(!has(graph, "\x1b"));
}

BOOST_AUTO_TEST_CASE(a_graph_shows_routes_of_a_workflow) {
  const auto graph = drawings::to_dot_text(workflow(), false);
  BOOST_TEST(has(graph, "\"START\" -> \"check\"\n"));
  BOOST_TEST(has(graph, "\"check\" -> \"write\" [label=\"on ok\"]\n"));
  BOOST_TEST(has(graph, "\"check\" -> \"gather\" [label=\"by default\"]\n"));
}

BOOST_AUTO_TEST_CASE(dark_and_light_graphs_differ_in_colours_alone) {
  const auto tree = whole_tree();
  const auto without_colours = [](std::string text) {
    for (auto at = text.find("\"#"); at != text.npos; at = text.find("\"#"))
      text.erase(at, 9);
    return text;
  };
  const auto light = to_dot(tree);
  const auto dark = to_dot(tree, {.dark = true});
  BOOST_TEST(light != dark);
  BOOST_TEST(without_colours(light) == without_colours(dark));
}

// -- the form of ADK ----

BOOST_AUTO_TEST_CASE(the_form_of_adk_has_its_fields) {
  const auto form = drawings::to_adk_form(drawings::draw(whole_tree()));
  BOOST_TEST(form["name"] == "desk");
  BOOST_TEST(form["description"] == "The desk.");
  BOOST_TEST(form["model"] == "big");
  BOOST_TEST(form["instruction"] == "Route.");
  BOOST_TEST(form["global_instruction"] == "");
  BOOST_TEST(form["disallow_transfer_to_parent"] == false);
  BOOST_TEST(form["disallow_transfer_to_peers"] == false);
  BOOST_TEST(form["include_contents"] == "default");
  BOOST_TEST(form["output_key"] == "answer");
  BOOST_TEST(form["rerun_on_resume"] == false);
  BOOST_TEST(form["wait_for_output"] == false);
  std::vector<std::string> tools;
  for (const auto& each : form["tools"]) {
    BOOST_TEST(each["type"] == "tool");
    tools.push_back(each["name"].get<std::string>());
  }
  const std::vector<std::string> known{
    "look_up", "pay", "helper", "read", "write"};
  BOOST_TEST(tools == known, boost::test_tools::per_element());
  const auto& reviews = form["sub_agents"][0];
  BOOST_TEST(form["sub_agents"].size() == 3U);
  BOOST_TEST(reviews["name"] == "reviews");
  BOOST_TEST(!reviews.contains("tools"));
  BOOST_TEST(reviews["sub_agents"][1]["max_iterations"] == 3);
  BOOST_TEST(reviews["sub_agents"][1]["sub_agents"][0]["include_contents"]
             == "none");
  BOOST_TEST(form["sub_agents"][1]["mode"] == "task");
  BOOST_TEST(!reviews["sub_agents"][0].contains("mode"));
}

BOOST_AUTO_TEST_CASE(an_instruction_of_a_function_has_no_text) {
  const auto form = drawings::to_adk_form(drawings::draw(llm(
    {.name = "a",
     .model = named("m"),
     .instruction = [](const readonly_context&) { return std::string("x"); },
     .static_instruction = "Always."})));
  BOOST_TEST(!form.contains("instruction"));
  BOOST_TEST(form["static_instruction"] == "Always.");
}

BOOST_AUTO_TEST_CASE(a_set_without_known_tools_is_named_itself) {
  const auto set = std::make_shared<known_set>("npx", std::vector<tool>());
  const auto form = drawings::to_adk_form(
    drawings::draw(llm({.name = "a", .model = named("m"), .toolsets = {set}})));
  BOOST_TEST(form["tools"][0]["name"] == "npx");
}

BOOST_AUTO_TEST_CASE(a_workflow_has_a_graph_in_the_form_of_adk) {
  const auto form = drawings::to_adk_form(workflow());
  BOOST_TEST(form["sub_agents"] == json::array());
  const auto& graph = form["graph"];
  BOOST_TEST(graph["nodes"][0]["name"] == "__START__");
  BOOST_TEST(graph["nodes"][0]["type"] == "start");
  BOOST_TEST(graph["nodes"][1]["type"] == "function");
  BOOST_TEST(graph["nodes"][2]["type"] == "agent");
  BOOST_TEST(graph["nodes"][3]["type"] == "join");
  BOOST_TEST(graph["edges"][0]["from_node"]["name"] == "__START__");
  BOOST_TEST(!graph["edges"][0].contains("route"));
  BOOST_TEST(graph["edges"][1]["route"] == "ok");
  BOOST_TEST(graph["edges"][2]["route"] == "__DEFAULT__");
  BOOST_TEST(graph["edges"][2]["to_node"]["name"] == "gather");
}

BOOST_AUTO_TEST_CASE(paths_lead_to_agents_and_not_to_tools) {
  const auto root = drawings::draw(whole_tree());
  const auto name_at = [&root](std::string_view path) {
    const auto* found = drawings::find_below(root, path);
    return found == nullptr ? std::string("none") : found->name;
  };
  BOOST_TEST(name_at("") == "desk");
  BOOST_TEST(name_at("desk") == "desk");
  BOOST_TEST(name_at("reviews/refine/critic") == "critic");
  BOOST_TEST(name_at("/desk/reviews/") == "reviews");
  BOOST_TEST(name_at("refine") == "none");
  BOOST_TEST(name_at("look_up") == "none");
  BOOST_TEST(name_at("helper") == "none");
  BOOST_TEST(name_at("desk/desk") == "none");
}

BOOST_AUTO_TEST_CASE(workflows_are_found_by_their_paths) {
  drawings::node root;
  root.name = "root";
  drawings::node middle;
  middle.name = "middle";
  middle.steps = {workflow()};
  root.steps = {middle};
  const auto below = drawings::workflows_below(root, "");
  BOOST_TEST_REQUIRE(below.size() == 1U);
  BOOST_TEST(below[0].first == "middle/flow");
  BOOST_TEST(below[0].second->name == "flow");
  BOOST_TEST(drawings::workflows_below(workflow(), "a/flow")[0].first
             == "a/flow");
}

BOOST_AUTO_TEST_SUITE_END()
