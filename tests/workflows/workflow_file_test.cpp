// Workflows in agent files.

#include "troupe/agents/agent_file.hpp"
#include "troupe/agents/drawing.hpp"
#include "troupe/agents/graphs/graph.hpp"
#include "troupe/agents/turns/node_event.hpp"

#include "../runtime/agent_fixture.hpp"
#include "../stores/temporary_folder.hpp"
#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;
using namespace troupe::testing;

BOOST_AUTO_TEST_SUITE(workflow_files)

namespace {

class file_fixture {
public:
  result<agent> load(const std::string& edges,
                     const std::string& name = "root.yaml") {
    write(name, "agent_class: Workflow\nname: w\nedges:\n" + edges);
    agent_file_options options;
    options.model = echo();
    options.allowed_commands = {"true"};
    options.tools = make_registry(
      {tool_of("pick", [](const json& args, tool_context&) -> json {
        return args.empty() ? json("yes") : args.begin().value();
      })});
    return load_agent_file(folder.path() / name, options);
  }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder.path() / name) << text;
  }

  /// The edges of a loaded workflow: `a>b:route;`.
  std::string edges_of(const std::string& edges) {
    const auto made = load(edges);
    if (!made)
      return made.error().message();
    const auto& graph = *std::get<compiled_workflow>(made->kind()).graph;
    std::string all;
    for (const auto& each : graph.edges()) {
      all += each.from == workflow_graph::start ? "START"
                                                : graph.nodes()[each.from].name;
      all += ">" + graph.nodes()[each.to].name;
      for (const auto& one : each.routes)
        all += ":" + to_text(to_json(one));
      all += each.otherwise ? ":otherwise;" : ";";
    }
    return all;
  }

  /// The reason of a refusal, from its place on.
  std::string refused(const std::string& edges) {
    const auto made = load(edges);
    if (made)
      return "";
    BOOST_TEST(code_of(made) == "invalid_argument");
    const auto& why = made.error().message();
    return why.substr(why.find("root.yaml:") + 9);
  }

  temporary_folder folder;
};

bool starts(const std::string& text, const std::string& with) {
  if (text.starts_with(with))
    return true;
  BOOST_TEST_MESSAGE("'" << text << "' does not start with '" << with << "'");
  return false;
}

} // namespace

BOOST_FIXTURE_TEST_CASE(chains_lists_and_maps_are_edges, file_fixture) {
  BOOST_TEST(edges_of("- [START, {name: a}, [{name: b}, {name: c}], "
                      "{agent_class: JoinNode, name: j}]\n")
             == "START>a;a>b;a>c;b>j;c>j;");
  BOOST_TEST(edges_of("- [START, {name: a}, {x: {name: b}, 1: [c, b2], "
                      "\"2\": c, true: c, __DEFAULT__: c}]\n"
                      "- [b, {name: c}]\n"
                      "- [b, {x: {name: b2}}]\n")
             == "START>a;a>b:\"x\";a>c:1;a>b2:1;a>c:\"2\";a>c:true;a>c:"
                "otherwise;b>c;b>b2:\"x\";");
}

BOOST_FIXTURE_TEST_CASE(places_that_are_named_twice_have_one_edge,
                        file_fixture) {
  BOOST_TEST(edges_of("- [START, {name: a}, {x: {name: b}, y: b, __DEFAULT__: "
                      "b}, {name: c}]\n"
                      "- [c, [{name: d}, d]]\n")
             == "START>a;a>b:\"x\";a>b:\"y\";a>b:otherwise;b>c;c>d;");
}

BOOST_FIXTURE_TEST_CASE(edges_of_two_long_lists_are_refused, file_fixture) {
  const auto list = [](char first) {
    std::string all = "[";
    for (int index = 0; index < 400; ++index)
      all += fmt::format("{}{{agent_class: JoinNode, name: {}{}}}",
                         index == 0 ? "" : ", ",
                         first,
                         index);
    return all + "]";
  };
  BOOST_TEST(
    starts(refused("- [START, " + list('a') + ", " + list('b') + "]\n"),
           ":4: the workflow has more than 100000 edges"));
}

BOOST_FIXTURE_TEST_CASE(a_file_with_tools_of_a_program_can_be_shown,
                        file_fixture) {
  write(
    "root.yaml",
    "agent_class: Workflow\nname: w\nedges:\n- [START, look_up, {name: a}]\n");
  agent_file_options options;
  options.only_shown = true;
  const auto made = load_agent_file(folder.path() / "root.yaml", options);
  BOOST_TEST_REQUIRE(made.has_value());
  const auto drawn = to_text(*made);
  BOOST_TEST(drawn.find("look_up") != std::string::npos);
  BOOST_TEST(drawn.find("START") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(one_edge_is_a_mapping, file_fixture) {
  BOOST_TEST(edges_of("- [START, {name: a}]\n"
                      "- {from_node: a, to_node: {name: b}, route: [x, 2]}\n"
                      "- {from_node: a, to_node: b, route: __DEFAULT__}\n"
                      "- {from_node: b, to_node: c}\n"
                      "- {from_node: a, to_node: {name: c}, route: true}\n")
             == "START>a;a>b:\"x\":2;a>b:otherwise;b>c;a>c:true;");
}

BOOST_FIXTURE_TEST_CASE(agents_of_other_files_are_nodes, file_fixture) {
  write("other.yaml", "name: other\ninstruction: hi\n");
  write("third.yaml", "name: third\ninstruction: hi\n");
  BOOST_TEST(edges_of("- [START, other.yaml, {config_path: third.yaml}]\n"
                      "- [third, {again: other.yaml}]\n")
             == "START>other;other>third;third>other:\"again\";");
}

BOOST_FIXTURE_TEST_CASE(rules_of_nodes_are_read, file_fixture) {
  const auto made = load("- - START\n"
                         "  - {name: a, timeout: 2.5, visits_max: 7,\n"
                         "     retry_config: {max_attempts: 4, initial_delay: "
                         "0.5, jitter: 0}}\n"
                         "  - {agent_class: JoinNode, name: j, count: 1, "
                         "on_missing: drop, on_failed: skip}\n");
  BOOST_TEST_REQUIRE(made.has_value());
  const auto& nodes = std::get<compiled_workflow>(made->kind()).graph->nodes();
  BOOST_TEST(nodes[0].timeout->count() == 2500);
  BOOST_TEST(nodes[0].visits_max == 7U);
  BOOST_TEST(nodes[0].retry.attempts_max == 4U);
  BOOST_TEST(nodes[0].retry.first_delay.count() == 500);
  BOOST_TEST(nodes[0].retry.delay_max.count() == 60'000);
  BOOST_TEST(
    (std::get<join>(nodes[1].work).on_missing == missing_inputs::drop));
  BOOST_TEST((std::get<join>(nodes[1].work).on_failed == failed_inputs::skip));
}

BOOST_FIXTURE_TEST_CASE(a_parallel_worker_is_a_map, file_fixture) {
  const auto made = load("- - START\n"
                         "  - {name: a, parallel_worker: true,\n"
                         "     max_parallel_workers: 3}\n"
                         "  - {name: t, command: [\"true\"],\n"
                         "     parallel_worker: true}\n"
                         "  - {name: b, parallel_worker: false}\n");
  BOOST_TEST_REQUIRE(made.has_value(), reason_of(made));
  const auto& nodes = std::get<compiled_workflow>(made->kind()).graph->nodes();
  const auto& first = std::get<workflow_graph::mapped>(nodes[0].work);
  BOOST_TEST(std::holds_alternative<std::size_t>(first.work));
  BOOST_TEST(first.lanes_max.value() == 3U);
  const auto& second = std::get<workflow_graph::mapped>(nodes[1].work);
  BOOST_TEST(std::holds_alternative<tool>(second.work));
  BOOST_TEST(!second.lanes_max.has_value());
  BOOST_TEST(std::holds_alternative<std::size_t>(nodes[2].work));
}

BOOST_FIXTURE_TEST_CASE(mistakes_are_named_with_their_line, file_fixture) {
  const std::vector<std::pair<std::string, std::string>> cases{
    {"- [START, a]\n", ":4: 'a' is neither a node of this workflow nor a tool"},
    {"- [START]\n", ":4: a chain of 'edges' has at least two places"},
    {"- START\n", ":4: an item of 'edges' is a list"},
    {"- [{x: b}, {name: b}]\n", ":4: a chain begins with a node or START"},
    {"- [START, {name: a}, {x: a}, {y: a}]\n",
     ":4: two routing maps follow each other"},
    {"- [START, {name: a}, {}]\n", ":4: a routing map has no route"},
    {"- [START, {name: a}, {1.5: a}]\n", ":4: a route is a text, a whole"},
    {"- [START, {name: a}, []]\n", ":4: the list names no node"},
    {"- [START, shop.tools.search]\n",
     ":4: 'shop.tools.search' names Python code"},
    {"- [START, {func_code: shop.f}]\n", ":4: 'func_code' names Python code"},
    {"- [START, {agent_class: FunctionNode, name: f}]\n",
     ":4: 'FunctionNode' names Python code"},
    {"- [START, {agent_class: JoinNode}]\n", ":4: a JoinNode needs a field"},
    {"- [START, {agent_class: JoinNode, name: j, x: 1}]\n",
     ":4: unknown field 'x'; JoinNode has"},
    {"- {from_node: START}\n", ":4: the edge has no to_node"},
    {"- {from_node: START, to_node: {name: a}, when: x}\n",
     ":4: unknown field 'when'; an edge has"},
    {"- {from_node: START, to_node: {name: a}, route: []}\n",
     ":4: 'route' is an empty list"},
    {"- [START, {name: a, retry_config: {exceptions: [ValueError]}}]\n",
     ":4: 'exceptions' names Python code"},
    {"- [START, {name: a, retry_config: {tries: 1}}]\n",
     ":4: unknown field 'tries'; retry_config has"},
    {"- [START, {name: a, retry_config: {jitter: big}}]\n",
     ":4: 'jitter' must be a number"},
    {"- [START, {name: a, retry_config: {initial_delay: -0.0005}}]\n",
     ":4: 'initial_delay' must be a number, and not below 0"},
    {"- [START, {name: a}]\n- [START, {name: a}]\n",
     ":5: agent name 'a' comes twice"},
    {"- [START, {name: a}, {name: b}, a]\n", ":3: workflow 'w': the cycle"},
    {"- [START, {name: a}]\nsub_agents: [{name: b}]\n",
     ":5: this class has no field 'sub_agents'"},
    {"- [START, {name: a, max_parallel_workers: 2}]\n",
     ":4: 'max_parallel_workers' needs 'parallel_worker: true'"},
    {"- [START, {name: a, parallel_worker: true, max_parallel_workers: 0}]\n",
     ":4: 'max_parallel_workers'"},
    {"- [START, {name: a, parallel_worker: many}]\n", ":4: 'parallel_worker'"},
    {"- [START, {agent_class: JoinNode, name: j, parallel_worker: true}]\n",
     ":4: unknown field 'parallel_worker'; JoinNode has"},
    {"- [START, {agent_class: JoinNode, name: j, on_failed: drop}]\n",
     ":4: unknown on_failed 'drop'; expected one of fail, skip"},
    {"- [START, {name: a}]\nlanes_max: 1\nmax_concurrency: 1\n",
     ":6: 'lanes_max' and 'max_concurrency' are the same"},
    {"- [{name: a}, {name: b}]\n", ":3: workflow 'w'"},
    {"- {from_node: START, to_node: {name: a}, route: x}\n",
     ":3: workflow 'w'"},
    {"- [START, {name: a}]\n- [{name: b}, {name: c}]\n", ":3: workflow 'w'"},
    {"- [START, {name: a}, START]\n", ":3: workflow 'w'"},
    {"- [START, {name: a}, {name: b}]\n- [a, {x: b, y: b}]\n",
     ":3: workflow 'w'"},
    {"- {from_node: START, to_node: {name: a}}\n"
     "- {from_node: a, to_node: {name: b}, route: [x, __DEFAULT__]}\n",
     ":5: __DEFAULT__ stands alone, not in a list of routes"},
    {"- [START, other.yaml]\n", ":4: config_path 'other.yaml': no such file"},
  };
  for (const auto& [edges, why] : cases)
    BOOST_TEST(starts(refused(edges), why), refused(edges));
  write("none.yaml", "agent_class: Workflow\nname: w\n");
  agent_file_options options;
  options.model = echo();
  const auto without = load_agent_file(folder.path() / "none.yaml", options);
  BOOST_TEST(reason_of(without).find("needs a field 'edges'")
             != std::string::npos);
}

// The sample of docs/agent_files.md.
BOOST_FIXTURE_TEST_CASE(the_sample_of_the_page_runs, file_fixture) {
  std::ifstream page("../docs/agent_files.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  const auto first = text.find("agent_class: Workflow");
  BOOST_TEST_REQUIRE(first != std::string::npos);
  write("root.yaml", text.substr(first, text.find("```", first) - first));
  write("faults.yaml", "name: faults\ninstruction: f\n");
  const auto answers = [](const std::string& sorted) {
    return scripted({{"sorter", {{.text = sorted}}},
                     {"bills", {{.text = "paid"}}},
                     {"faults", {{.text = "mended"}}}});
  };
  for (const auto& [sorted, last] : {std::pair("bill", "bills=paid"),
                                     std::pair("outage", "faults=mended")}) {
    agent_file_options options;
    options.model = answers(sorted);
    const auto made = load_agent_file(folder.path() / "root.yaml", options);
    BOOST_TEST_REQUIRE(made.has_value());
    agent_fixture on;
    const auto line = on.perform(*made);
    BOOST_TEST(line.find(last) != std::string::npos);
    BOOST_TEST(line.find("| ok") != std::string::npos);
  }
}

// The answer of a model, or the result of a tool, chooses the next node.
BOOST_FIXTURE_TEST_CASE(an_answer_is_a_route, file_fixture) {
  agent_fixture on;
  const auto made = load("- - START\n"
                         "  - {name: sorter, instruction: \" bill\\n\"}\n"
                         "  - {bill: {name: bills, instruction: b}, "
                         "__DEFAULT__: {name: others, instruction: o}}\n"
                         "- [bills, {b: pick}]\n"
                         "- [pick, {\"yes\": {name: last, instruction: l}}]\n");
  BOOST_TEST_REQUIRE(made.has_value());
  BOOST_TEST(on.perform(*made).find("bills=b") != std::string::npos);
  std::string visited;
  for (const auto& each : on.events(on.key))
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::end)
      visited += said->node + " ";
  // A text is no object with arguments, so the tool fails.
  BOOST_TEST(visited == "sorter bills ");
  BOOST_TEST(on.last_reason().find("'pick'") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
