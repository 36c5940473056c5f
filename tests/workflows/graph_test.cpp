// The refusals of workflows when they are made, and the edges that are
// followed.

#include "troupe/agents/graphs/graph.hpp"

#include "troupe/agents/function_tool.hpp"

#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(workflow_graphs)

namespace {

workflow_node node(std::string name) {
  return {.name = std::move(name),
          .work = node_function([](node_context&) { return json(1); })};
}

workflow_node joining(std::string name, join rule = {}) {
  return {.name = std::move(name), .work = rule};
}

std::vector<workflow_node> nodes(const std::vector<std::string>& names) {
  std::vector<workflow_node> made;
  for (const auto& name : names)
    made.push_back(node(name));
  return made;
}

/// The reason for which a workflow is refused; empty if it is not.
std::string reason(std::vector<workflow_node> all,
                   std::vector<workflow_edge> edges) {
  try {
    workflow({.name = "w", .nodes = std::move(all), .edges = std::move(edges)});
    return {};
  } catch (const error& refused) {
    BOOST_TEST((refused.code() == errc::invalid_argument));
    return refused.message();
  }
}

bool names(const std::string& text, const std::vector<std::string>& words) {
  for (const auto& word : words)
    if (text.find(word) == std::string::npos) {
      BOOST_TEST_MESSAGE("'" << text << "' lacks '" << word << "'");
      return false;
    }
  return true;
}

workflow_graph graph_of(std::vector<workflow_node> all,
                        const std::vector<workflow_edge>& edges) {
  std::vector<agent> agents;
  return workflow_graph("w", all, edges, agents);
}

/// The names of the nodes that follow, in order.
std::string followed(const workflow_graph& graph,
                     const std::string& from,
                     const std::vector<route>& routes) {
  std::string all;
  for (const auto each : graph.followed(graph.find(from), routes))
    all += graph.nodes()[each].name;
  return all;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_workflow_that_can_end_is_made) {
  BOOST_TEST(reason(nodes({"a", "b"}), {{"START", "a"}, {"a", "b"}}) == "");
}

BOOST_AUTO_TEST_CASE(names_are_checked) {
  const std::vector<workflow_edge> edges{{"START", "a"}};
  BOOST_TEST(names(reason({node("")}, edges), {"node 1 has no name"}));
  BOOST_TEST(names(reason({node("a b")}, edges), {"'a b'", "identifier"}));
  BOOST_TEST(names(reason({node("START")}, edges), {"'START'"}));
  BOOST_TEST(names(reason(nodes({"a", "a"}), edges), {"'a'", "twice"}));
}

BOOST_AUTO_TEST_CASE(edges_name_nodes) {
  BOOST_TEST(names(reason(nodes({"a"}), {}), {"no edge begins at START"}));
  BOOST_TEST(names(reason(nodes({"a"}), {{"START", "a"}, {"a", "x"}}),
                   {"leads to 'x'", "no node"}));
  BOOST_TEST(names(reason(nodes({"a"}), {{"START", "a"}, {"x", "a"}}),
                   {"begins at 'x'", "no node"}));
  BOOST_TEST(names(reason(nodes({"a"}), {{"START", "a"}, {"a", "START"}}),
                   {"from 'a'", "START"}));
}

BOOST_AUTO_TEST_CASE(start_follows_all_of_its_edges) {
  BOOST_TEST(names(reason(nodes({"a"}), {{"START", "a", {"x"}}}),
                   {"'START' to 'a'", "route"}));
  BOOST_TEST(names(
    reason(nodes({"a"}), {{.from = "START", .to = "a", .otherwise = true}}),
    {"'START' to 'a'"}));
}

BOOST_AUTO_TEST_CASE(a_node_without_a_path_is_refused) {
  BOOST_TEST(
    names(reason(nodes({"a", "b", "c"}), {{"START", "a"}, {"b", "c", {"x"}}}),
          {"no path", "'b'"}));
}

BOOST_AUTO_TEST_CASE(the_same_edge_twice_is_refused) {
  const auto twice = [](workflow_edge one, workflow_edge other) {
    return reason(nodes({"a", "b"}),
                  {{"START", "a"}, std::move(one), std::move(other)});
  };
  BOOST_TEST(names(twice({"a", "b"}, {"a", "b"}), {"'a' to 'b'", "twice"}));
  BOOST_TEST(names(twice({"a", "b", {"x"}}, {"a", "b"}),
                   {"'a' to 'b'", "without a route"}));
  BOOST_TEST(names(twice({"a", "b", {"x", "y"}}, {"a", "b", {"y"}}),
                   {"'a' to 'b'", "route"}));
  BOOST_TEST(twice({"a", "b", {"x"}}, {"a", "b", {"y"}}) == "");
  BOOST_TEST(twice({"a", "b", {1}}, {"a", "b", {true}}) == "");
  BOOST_TEST(
    twice({"a", "b", {"x"}}, {.from = "a", .to = "b", .otherwise = true})
    == "");
  BOOST_TEST(names(
    reason(nodes({"a", "b"}),
           {{"START", "a"},
            {.from = "a", .to = "b", .routes = {"x"}, .otherwise = true}}),
    {"'a' to 'b'", "otherwise"}));
}

BOOST_AUTO_TEST_CASE(a_cycle_that_never_ends_is_refused_with_its_nodes) {
  BOOST_TEST(names(reason(nodes({"a", "b", "c"}),
                          {{"START", "a"}, {"a", "b"}, {"b", "c"}, {"c", "b"}}),
                   {"b -> c -> b", "never ends"}));
  BOOST_TEST(
    names(reason(nodes({"a"}), {{"START", "a"}, {"a", "a"}}), {"a -> a"}));
  BOOST_TEST(
    reason(
      nodes({"a", "b"}),
      {{"START", "a"}, {"a", "b"}, {.from = "b", .to = "a", .otherwise = true}})
    == "");
}

BOOST_AUTO_TEST_CASE(a_join_counts_the_nodes_before_it) {
  const auto with = [](std::size_t count) {
    return reason({node("a"), node("b"), joining("j", {.count = count})},
                  {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"b", "j"}});
  };
  BOOST_TEST(names(with(0), {"'j'", "count of 0"}));
  BOOST_TEST(names(with(3), {"'j'", "count of 3", "2 nodes"}));
  BOOST_TEST(with(2) == "");
}

BOOST_AUTO_TEST_CASE(a_join_that_can_skip_no_failure_is_refused) {
  const join skips{.on_failed = failed_inputs::skip};
  BOOST_TEST(reason({node("a"), node("b"), joining("j", skips)},
                    {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"b", "j"}})
             == "");
  // The failure of 'a' ends the workflow, that of 'b' does not.
  BOOST_TEST(
    reason({node("a"), node("b"), node("c"), joining("j", skips)},
           {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"a", "c"}, {"b", "j"}})
    == "");
  BOOST_TEST(names(reason({node("a"), node("c"), joining("j", skips)},
                          {{"START", "a"}, {"a", "j"}, {"a", "c"}}),
                   {"join 'j' skips failed inputs", "ends the workflow"}));
  BOOST_TEST(names(reason({joining("j", skips)}, {{"START", "j"}}),
                   {"join 'j' skips failed inputs"}));
}

BOOST_AUTO_TEST_CASE(failures_are_skipped_where_all_edges_lead_to_such_joins) {
  const join skips{.on_failed = failed_inputs::skip};
  const auto graph
    = graph_of({node("a"), node("b"), node("c"), joining("j", skips)},
               {{"START", "a"},
                {"START", "b"},
                {"a", "j"},
                {"b", "j", {"x"}},
                {"b", "c", {"y"}}});
  BOOST_TEST(graph.skips_failure_of(graph.find("a")));
  BOOST_TEST(!graph.skips_failure_of(graph.find("b")));
  BOOST_TEST(!graph.skips_failure_of(graph.find("c")));
  BOOST_TEST(!graph.skips_failure_of(graph.find("j")));
}

BOOST_AUTO_TEST_CASE(maps_are_checked) {
  const auto mapping = [](map_over all) {
    return workflow_node{.name = "m", .work = std::move(all)};
  };
  const node_function gives([](node_context&) { return json(1); });
  BOOST_TEST(
    reason({mapping({.work = gives, .lanes_max = 1})}, {{"START", "m"}}) == "");
  BOOST_TEST(
    names(reason({mapping({.work = gives, .lanes_max = 0})}, {{"START", "m"}}),
          {"map 'm'", "lanes_max is 0"}));
  BOOST_TEST(
    names(reason({mapping({.work = node_function()})}, {{"START", "m"}}),
          {"'m'", "no function"}));
  BOOST_TEST(names(reason({mapping({.work = gives}), node("b")},
                          {{"START", "m"}, {"m", "b", {"x"}}}),
                   {"'m' to 'b'", "a map gives none"}));
  tool_options options;
  options.name = "t";
  options.long_running = true;
  options.run = [](const json&, tool_context&) { return json(1); };
  BOOST_TEST(
    names(reason({{.work = map_over{.work = tool(options)}}}, {{"START", "t"}}),
          {"'t'", "LLM agent"}));
}

BOOST_AUTO_TEST_CASE(limits_and_retries_are_checked) {
  const auto with = [](const std::function<void(workflow_node&)>& change) {
    auto changed = node("a");
    change(changed);
    return reason({std::move(changed)}, {{"START", "a"}});
  };
  BOOST_TEST(names(with([](auto& a) { a.visits_max = 0; }), {"visits_max"}));
  BOOST_TEST(names(with([](auto& a) { a.timeout.emplace(0); }), {"timeout"}));
  BOOST_TEST(
    names(with([](auto& a) { a.retry.attempts_max = 0; }), {"attempts_max"}));
  BOOST_TEST(names(with([](auto& a) { a.retry.factor = 0.5; }), {"factor"}));
  BOOST_TEST(names(with([](auto& a) { a.retry.jitter = 1.5; }), {"jitter"}));
  BOOST_TEST(
    names(with([](auto& a) { a.retry.factor = std::nan(""); }), {"factor"}));
  BOOST_TEST(
    names(with([](auto& a) { a.timeout = std::chrono::hours(10'000'000); }),
          {"100 years"}));
  BOOST_TEST(
    names(with([](auto& a) { a.work = node_function(); }), {"no function"}));
  BOOST_CHECK_THROW(workflow({.name = "w",
                              .nodes = {node("a")},
                              .edges = {{"START", "a"}},
                              .lanes_max = 0}),
                    error);
  BOOST_CHECK_THROW(workflow({.name = "w",
                              .nodes = {node("a")},
                              .edges = {{"START", "a"}},
                              .output_key = "temp:user:x"}),
                    error);
}

BOOST_AUTO_TEST_CASE(tools_that_are_answered_from_outside_are_refused) {
  const auto with = [](tool_options options) {
    options.name = "t";
    options.run = [](const json&, tool_context&) { return json(1); };
    return reason({{.work = tool(std::move(options))}}, {{"START", "t"}});
  };
  BOOST_TEST(with({}) == "");
  BOOST_TEST(names(with({.long_running = true}), {"'t'", "LLM agent"}));
  BOOST_TEST(with({.require_confirmation = true}) == "");
}

BOOST_AUTO_TEST_CASE(agents_give_their_names_and_are_sub_agents) {
  const auto inner
    = custom("worker", [](invocation_context&) -> agent_run { co_return; });
  const auto made = workflow(
    {.name = "w", .nodes = {{.work = inner}}, .edges = {{"START", "worker"}}});
  BOOST_TEST(made.sub_agents().size() == 1U);
  BOOST_TEST(names(reason({{.work = inner}, {.name = "x", .work = inner}},
                          {{"START", "worker"}, {"worker", "x"}}),
                   {"'worker'", "twice"}));
}

// Route rules of the source: every edge without routes, every edge with one of
// the routes once, and the others only if none of these was followed.
BOOST_AUTO_TEST_CASE(edges_are_followed_by_routes) {
  const auto graph = graph_of(nodes({"a", "b", "c", "d"}),
                              {{"START", "a"},
                               {"a", "b"},
                               {"a", "c", {"x", "y"}},
                               {.from = "a", .to = "d", .otherwise = true}});
  BOOST_TEST(followed(graph, "a", {}) == "bd");
  BOOST_TEST(followed(graph, "a", {"x"}) == "bc");
  BOOST_TEST(followed(graph, "a", {"x", "y"}) == "bc");
  BOOST_TEST(followed(graph, "a", {"z"}) == "bd");
  BOOST_TEST(followed(graph, "START", {}) == "a");
}

BOOST_AUTO_TEST_CASE(routes_of_different_types_are_different) {
  const auto graph = graph_of(nodes({"a", "b", "c", "d", "e"}),
                              {{"START", "a"},
                               {"a", "b", {1}},
                               {"a", "c", {"1"}},
                               {"a", "d", {"true"}},
                               {"a", "e", {true}}});
  BOOST_TEST(followed(graph, "a", {true}) == "e");
  BOOST_TEST(followed(graph, "a", {1}) == "b");
  BOOST_TEST(followed(graph, "a", {"1"}) == "c");
  BOOST_TEST(followed(graph, "a", {false}) == "");
}

BOOST_AUTO_TEST_CASE(routes_are_json_of_three_types) {
  for (const auto& each : std::vector<route>{"a", "", 7, INT64_MIN, true})
    BOOST_TEST((route_from_json(to_json(each)).value() == each));
  for (const auto* bad : {"null", "1.5", "[1]", "9223372036854775808"})
    BOOST_TEST(!route_from_json(parse_json(bad).value()));
}

BOOST_AUTO_TEST_CASE(a_structure_is_listed_or_hashed) {
  const auto small
    = graph_of(nodes({"a", "b"}),
               {{"START", "a"}, {"a", "b", {"x", 1}}, {"a", "a", {true}}});
  BOOST_TEST(to_text(small.structure())
             == R"({"nodes":[{"edges":["a"],"kind":"start","name":"START"},)"
                R"({"edges":["b \"x\" 1","a true"],"kind":"function",)"
                R"("name":"a"},{"edges":[],"kind":"function","name":"b"}]})");
  const auto large = [](const std::string& last) {
    std::vector<std::string> names;
    std::vector<workflow_edge> edges;
    for (int index = 0; index < 2'000; ++index) {
      names.push_back("node_" + std::to_string(index));
      edges.push_back({"START", names.back()});
    }
    names.push_back(last);
    edges.push_back({"START", last});
    return graph_of(nodes(names), edges).structure();
  };
  BOOST_TEST(large("a").at("hash").get<std::string>().size() == 16U);
  BOOST_TEST(large("a") == large("a"));
  BOOST_TEST(large("a") != large("b"));
}

BOOST_AUTO_TEST_CASE(the_rule_of_a_join_is_part_of_the_structure) {
  const auto with = [](join rule) {
    return graph_of({node("a"), node("b"), joining("j", rule)},
                    {{"START", "a"}, {"START", "b"}, {"a", "j"}, {"b", "j"}})
      .structure();
  };
  BOOST_TEST(with({}) == with({.count = 2}));
  BOOST_TEST(with({}) != with({.count = 1}));
  BOOST_TEST(with({}) != with({.on_missing = missing_inputs::drop}));
  BOOST_TEST(with({}) != with({.on_failed = failed_inputs::skip}));
}

BOOST_AUTO_TEST_CASE(a_map_is_part_of_the_structure) {
  const node_function gives([](node_context&) { return json(1); });
  const auto with = [](node_work work) {
    return graph_of({{.name = "m", .work = std::move(work)}}, {{"START", "m"}})
      .structure();
  };
  BOOST_TEST(to_text(with(map_over{.work = gives}).at("nodes")[1])
             == R"({"each":"function","edges":[],"kind":"map","name":"m"})");
  BOOST_TEST(with(map_over{.work = gives}) != with(gives));
  BOOST_TEST(with(map_over{.work = gives})
             == with(map_over{.work = gives, .lanes_max = 3}));
}

BOOST_AUTO_TEST_CASE(an_output_is_a_route_of_an_edge) {
  const auto graph
    = graph_of(nodes({"a", "b"}), {{"START", "a"}, {"a", "b", {"x", 1, true}}});
  const auto a = graph.find("a");
  BOOST_TEST((graph.route_of(a, " x\n") == route("x")));
  BOOST_TEST((graph.route_of(a, 1) == route(1)));
  BOOST_TEST((graph.route_of(a, true) == route(true)));
  BOOST_TEST(!graph.route_of(a, "true"));
  BOOST_TEST(!graph.route_of(a, "y"));
  BOOST_TEST(!graph.route_of(a, json::object()));
  BOOST_TEST(!graph.route_of(graph.find("b"), "x"));
}

BOOST_AUTO_TEST_SUITE_END()
