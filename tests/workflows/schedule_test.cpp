// The order of visits: each case runs a graph with invented outputs, and then
// again from every beginning of the log that the first run has left.

#include "troupe/agents/graphs/schedule.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(workflow_schedules)

namespace {

struct ended {
  std::size_t node;
  std::uint64_t ordinal;
  json output;
  std::vector<route> routes;
  bool is_failed = false;
};

/// Results by the name of a node, or by its name and the number of a visit.
using script = std::map<std::string, node_output>;

/// A graph whose nodes are functions and joins, with their invented outputs.
struct played {
  std::vector<std::string> nodes;
  std::map<std::string, join> joins;
  std::vector<workflow_edge> edges;
  script outputs = {};
  std::uint64_t visits_max = 100;
  /// Names of nodes whose visits fail for good.
  std::set<std::string> failing = {};
};

std::unique_ptr<workflow_graph> graph_of(const played& from) {
  std::vector<workflow_node> nodes;
  for (const auto& name : from.nodes) {
    auto& added = nodes.emplace_back();
    added.name = name;
    added.visits_max = from.visits_max;
    if (const auto rule = from.joins.find(name); rule != from.joins.end())
      added.work = rule->second;
    else
      added.work = node_function([](node_context&) { return json(); });
  }
  std::vector<agent> agents;
  return std::make_unique<workflow_graph>("w", nodes, from.edges, agents);
}

std::string name_of(const workflow_graph& graph, std::size_t node) {
  return graph.nodes()[node].name;
}

/// Ends a visit as the script says. Joins give their inputs.
ended end_of(const workflow_graph& graph,
             const played& from,
             const workflow_visit& visit) {
  const auto& outputs = from.outputs;
  const auto name = name_of(graph, visit.node);
  ended made{
    visit.node, visit.ordinal, json(name), {}, from.failing.contains(name)};
  if (std::holds_alternative<join>(graph.nodes()[visit.node].work))
    made.output = *visit.input;
  for (const auto& key : {name, name + std::to_string(visit.ordinal)})
    if (const auto found = outputs.find(key); found != outputs.end()) {
      if (!found->second.output.is_null())
        made.output = found->second.output;
      made.routes = found->second.routes;
    }
  return made;
}

struct outcome {
  /// Names of the nodes, in the order of their ends, with the input of joins.
  std::string line;
  json output;
  std::vector<ended> log;
};

/// Visits that run are ended in an order that `choose` decides: it gives the
/// index of one of them.
using chooser
  = std::function<std::size_t(const std::vector<workflow_visit>& running)>;

void go_on(const workflow_graph& graph,
           const played& from,
           workflow_schedule& schedule,
           const chooser& choose,
           outcome& made) {
  std::vector<workflow_visit> running;
  for (;;) {
    while (auto next = schedule.next())
      running.push_back(std::move(*next));
    if (running.empty()) {
      const auto settled = schedule.settle();
      if (!settled) {
        made.line += "| " + settled.error().message();
        return;
      }
      if (!*settled)
        break;
      continue;
    }
    const auto index = choose(running);
    const auto visit = running[index];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(index));
    auto last = end_of(graph, from, visit);
    made.line += (last.is_failed ? "!" : "") + name_of(graph, last.node);
    if (std::holds_alternative<join>(graph.nodes()[last.node].work))
      made.line += to_text(*visit.input);
    for (const auto& each : visit.missing)
      made.line += "-" + each;
    made.log.push_back(last);
    auto followed = last.is_failed
                      ? schedule.skip(last.node, last.ordinal, "broken")
                      : schedule.end(last.node,
                                     last.ordinal,
                                     std::make_shared<const json>(last.output),
                                     last.routes);
    if (!followed) {
      made.line += "| " + followed.error().message();
      return;
    }
  }
  made.output = schedule.output();
}

std::size_t oldest(const std::vector<workflow_visit>&) {
  return 0;
}

std::size_t newest(const std::vector<workflow_visit>& running) {
  return running.size() - 1;
}

const auto message = std::make_shared<const json>("go");

outcome play_once(const played& from, const chooser& choose) {
  const auto graph = graph_of(from);
  workflow_schedule schedule(*graph, message, true);
  outcome made;
  go_on(*graph, from, schedule, choose, made);
  return made;
}

/// Plays the graph, and then continues each beginning of its log in a schedule
/// of its own, which must come to the same end.
outcome play(const played& from, const chooser& choose = oldest) {
  auto whole = play_once(from, choose);
  if (whole.line.find('|') != std::string::npos)
    return whole;
  const auto graph = graph_of(from);
  for (std::size_t kept = 0; kept <= whole.log.size(); ++kept) {
    workflow_schedule schedule(*graph, message, true);
    outcome again;
    for (std::size_t index = 0; index < kept; ++index) {
      const auto& each = whole.log[index];
      const auto replayed
        = each.is_failed
            ? schedule.replay_skip(each.node, each.ordinal, "broken")
            : schedule.replay(each.node,
                              each.ordinal,
                              std::make_shared<const json>(each.output),
                              each.routes);
      BOOST_TEST_REQUIRE(replayed.has_value());
    }
    go_on(*graph, from, schedule, choose, again);
    BOOST_TEST(again.log.size() == whole.log.size() - kept);
    BOOST_TEST(again.output == whole.output);
  }
  return whole;
}

} // namespace

BOOST_AUTO_TEST_CASE(nodes_run_in_the_order_of_their_edges) {
  const auto made
    = play({{"a", "b", "c"}, {}, {{"START", "a"}, {"a", "b"}, {"b", "c"}}});
  BOOST_TEST(made.line == "abc");
  BOOST_TEST(made.output == "c");
}

BOOST_AUTO_TEST_CASE(a_join_waits_for_all_nodes_before_it) {
  const played graph{{"a", "b", "c", "j", "d"},
                     {{"j", {}}},
                     {{"START", "a"},
                      {"a", "b"},
                      {"a", "c"},
                      {"b", "j"},
                      {"c", "j"},
                      {"j", "d"}}};
  BOOST_TEST(play(graph).line == R"(abcj{"b":"b","c":"c"}d)");
  BOOST_TEST(play(graph, newest).line == R"(acbj{"b":"b","c":"c"}d)");
}

BOOST_AUTO_TEST_CASE(without_a_join_a_node_runs_once_for_each_edge) {
  const auto made
    = play({{"a", "b", "c", "d"},
            {},
            {{"START", "a"}, {"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}}});
  BOOST_TEST(made.line == "abcdd");
}

BOOST_AUTO_TEST_CASE(a_join_that_cannot_fire_names_the_nodes) {
  played graph{{"a", "b", "c", "j", "d"},
               {{"j", {}}},
               {{"START", "a"},
                {"a", "b", {"x"}},
                {"a", "c", {"y"}},
                {"b", "j"},
                {"c", "j"},
                {"j", "d"}},
               {{"a", {nullptr, {"x"}}}}};
  BOOST_TEST(
    play(graph).line
    == "ab| join 'j' waits for c, which will give no more output; set its "
       "on_missing to skip or drop, or give it a count");
  graph.joins["j"].on_missing = missing_inputs::skip;
  BOOST_TEST(play(graph).line == R"(abj{"b":"b"}-cd)");
  graph.joins["j"].on_missing = missing_inputs::drop;
  BOOST_TEST(play(graph).line == "ab");
}

BOOST_AUTO_TEST_CASE(two_edges_for_two_routes_make_two_visits) {
  BOOST_TEST(play({{"a", "b"},
                   {},
                   {{"START", "a"}, {"a", "b", {"x"}}, {"a", "b", {"y"}}},
                   {{"a", {nullptr, {"x", "y"}}}}})
               .line
             == "abb");
  BOOST_TEST(play({{"a", "b"},
                   {},
                   {{"START", "a"}, {"a", "b", {"x", "y"}}},
                   {{"a", {nullptr, {"x", "y", "x"}}}}})
               .line
             == "ab");
}

BOOST_AUTO_TEST_CASE(a_route_that_is_given_twice_is_followed_once) {
  BOOST_TEST(play({{"a", "b", "c"},
                   {},
                   {{"START", "a"}, {"a", "b", {"x"}}, {"a", "c", {"y"}}},
                   {{"a", {nullptr, {"x", "x"}}}}})
               .line
             == "ab");
}

BOOST_AUTO_TEST_CASE(a_join_in_a_cycle_fires_once_in_each_round) {
  const auto made = play({{"a", "b", "c", "j", "d"},
                          {{"j", {}}},
                          {{"START", "a"},
                           {"a", "b"},
                           {"a", "c"},
                           {"b", "j"},
                           {"c", "j"},
                           {"j", "d"},
                           {"d", "a", {"again"}}},
                          {{"b2", "B"},
                           {"d1", {nullptr, {"again"}}},
                           {"d2", {nullptr, {"again"}}}}});
  BOOST_TEST(made.line
             == R"(abcj{"b":"b","c":"c"}d)"
                R"(abcj{"b":"B","c":"c"}d)"
                R"(abcj{"b":"b","c":"c"}d)");
}

// b goes round once more before c has ended: its second value must not meet
// the first one of c.
BOOST_AUTO_TEST_CASE(a_branch_that_laps_another_mixes_nothing) {
  played graph{{"a", "b", "c", "j"},
               {{"j", {.on_missing = missing_inputs::skip}}},
               {{"START", "a"},
                {"a", "b"},
                {"a", "c"},
                {"b", "j", {"on"}},
                {"b", "a", {"again"}},
                {"c", "j"}},
               {{"b1", {"b1", {"again"}}},
                {"b2", {"b2", {"on"}}},
                {"c1", "c1"},
                {"c2", "c2"}}};
  // b ends first, goes back to a, and both of its visits end before c's.
  const auto line = play_once(graph, oldest).line;
  BOOST_TEST(line.find(R"(j{"b":"b2","c":"c2"})") != std::string::npos);
  BOOST_TEST(line.find(R"(j{"c":"c1"}-b)") != std::string::npos);
  play(graph);
}

BOOST_AUTO_TEST_CASE(start_counts_as_a_node_before_a_join) {
  BOOST_TEST(
    play(
      {{"a", "j"}, {{"j", {}}}, {{"START", "j"}, {"START", "a"}, {"a", "j"}}})
      .line
    == R"(aj{"START":"go","a":"a"})");
}

BOOST_AUTO_TEST_CASE(a_fork_in_a_fork_meets_in_one_join) {
  const auto made = play({{"a", "b", "c", "d", "e", "j"},
                          {{"j", {}}},
                          {{"START", "a"},
                           {"a", "b"},
                           {"a", "c"},
                           {"b", "d"},
                           {"b", "e"},
                           {"d", "j"},
                           {"e", "j"},
                           {"c", "j"}}});
  BOOST_TEST(made.line == R"(abcdej{"c":"c","d":"d","e":"e"})");
}

BOOST_AUTO_TEST_CASE(forks_beside_each_other_meet) {
  BOOST_TEST(play({{"a", "b", "c", "d", "e", "f", "g", "j", "m", "k"},
                   {{"j", {}}, {"m", {}}, {"k", {}}},
                   {{"START", "a"},
                    {"a", "b"},
                    {"a", "c"},
                    {"b", "d"},
                    {"b", "e"},
                    {"c", "f"},
                    {"c", "g"},
                    {"d", "j"},
                    {"e", "j"},
                    {"f", "m"},
                    {"g", "m"},
                    {"j", "k"},
                    {"m", "k"}}})
               .line
             == R"(abcdefgj{"d":"d","e":"e"}m{"f":"f","g":"g"})"
                R"(k{"j":{"d":"d","e":"e"},"m":{"f":"f","g":"g"}})");
  BOOST_TEST(play({{"b", "c", "d", "e", "f", "g", "j"},
                   {{"j", {}}},
                   {{"START", "b"},
                    {"START", "c"},
                    {"b", "d"},
                    {"b", "e"},
                    {"c", "f"},
                    {"c", "g"},
                    {"d", "j"},
                    {"e", "j"},
                    {"f", "j"},
                    {"g", "j"}}})
               .line
             == R"(bcdefgj{"d":"d","e":"e","f":"f","g":"g"})");
}

// Round 1 chooses b, round 2 chooses c: c is no late input of round 1.
BOOST_AUTO_TEST_CASE(a_join_of_one_serves_each_round_of_a_cycle) {
  BOOST_TEST(play({{"a", "b", "c", "j", "d"},
                   {{"j", {.count = 1}}},
                   {{"START", "a"},
                    {"a", "b", {"x"}},
                    {"a", "c", {"y"}},
                    {"b", "j"},
                    {"c", "j"},
                    {"j", "d"},
                    {"d", "a", {"again"}}},
                   {{"a1", {nullptr, {"x"}}},
                    {"a2", {nullptr, {"y"}}},
                    {"d1", {nullptr, {"again"}}}}})
               .line
             == R"(abj{"b":"b"}dacj{"c":"c"}d)");
}

// The second round of a follows b alone, which must not meet c of the first.
BOOST_AUTO_TEST_CASE(a_round_without_a_fork_is_a_round) {
  const auto made
    = play({{"a", "b", "c", "j"},
            {{"j", {.on_missing = missing_inputs::drop}}},
            {{"START", "a"},
             {"a", "b"},
             {"a", "c", {"both"}},
             {"b", "a", {"again"}},
             {.from = "b", .to = "j", .otherwise = true},
             {"c", "j"}},
            {{"a1", {nullptr, {"both"}}}, {"b1", {nullptr, {"again"}}}}});
  BOOST_TEST(made.line.find('j') == std::string::npos);
}

// The branches that START forks come to their second round together, although
// one of them has a join inside.
BOOST_AUTO_TEST_CASE(a_join_inside_of_a_branch_keeps_no_branch_back) {
  const auto made = play({{"n0", "n1", "n3", "j2", "n4", "n5", "j6", "c7", "e"},
                          {{"j2", {}}, {"j6", {}}},
                          {{"START", "n0"},
                           {"START", "n1"},
                           {"START", "n3"},
                           {"n0", "j2"},
                           {"n1", "j2"},
                           {"n3", "n4"},
                           {"n4", "n5"},
                           {"j2", "j6"},
                           {"n5", "j6"},
                           {"j6", "c7"},
                           {"c7", "n0", {"again"}},
                           {"c7", "n1", {"again"}},
                           {"c7", "n3", {"again"}},
                           {"c7", "e", {"done"}}},
                          {{"c71", {nullptr, {"again"}}},
                           {"c72", {nullptr, {"again"}}},
                           {"c73", {nullptr, {"done"}}}}});
  BOOST_TEST(made.line.find('|') == std::string::npos);
  BOOST_TEST(made.output == json({{"e", "e"}}));
  BOOST_TEST(made.log.size() == 25U);
}

BOOST_AUTO_TEST_CASE(a_join_with_a_count_drops_what_comes_later) {
  played graph{{"a", "b", "c", "j", "d"},
               {{"j", {.count = 1}}},
               {{"START", "a"},
                {"START", "b"},
                {"START", "c"},
                {"a", "j"},
                {"b", "j"},
                {"c", "j"},
                {"j", "d"}}};
  BOOST_TEST(play(graph).line == R"(abcj{"a":"a"}d)");
  graph.joins["j"].count = 2;
  const auto line = play(graph, newest).line;
  BOOST_TEST(line.find(R"(j{"b":"b","c":"c"})") != std::string::npos);
  BOOST_TEST(line.find('d') == line.rfind('d'));
}

// -- failed inputs ----

namespace {

/// Three nodes at the same time before a join that skips failed ones.
played three_before(join rule, std::set<std::string> failing) {
  rule.on_failed = failed_inputs::skip;
  return {.nodes = {"a", "b", "c", "j", "d"},
          .joins = {{"j", rule}},
          .edges = {{"START", "a"},
                    {"START", "b"},
                    {"START", "c"},
                    {"a", "j"},
                    {"b", "j"},
                    {"c", "j"},
                    {"j", "d"}},
          .failing = std::move(failing)};
}

} // namespace

BOOST_AUTO_TEST_CASE(a_join_goes_on_without_failed_nodes) {
  BOOST_TEST(play(three_before({}, {})).line
             == R"(abcj{"a":"a","b":"b","c":"c"}d)");
  // The failure comes first, between the others, and last.
  BOOST_TEST(play(three_before({}, {"a"})).line
             == R"(!abcj{"b":"b","c":"c"}-ad)");
  BOOST_TEST(play(three_before({}, {"b"})).line
             == R"(a!bcj{"a":"a","c":"c"}-bd)");
  BOOST_TEST(play(three_before({}, {"c"})).line
             == R"(ab!cj{"a":"a","b":"b"}-cd)");
  BOOST_TEST(play(three_before({}, {"a", "c"})).line
             == R"(!ab!cj{"b":"b"}-a-cd)");
}

BOOST_AUTO_TEST_CASE(a_quorum_is_reached_in_spite_of_failures) {
  BOOST_TEST(play(three_before({.count = 1}, {"a", "b"})).line
             == R"(!a!bcj{"c":"c"}d)");
  BOOST_TEST(play(three_before({.count = 2}, {"a"})).line
             == R"(!abcj{"b":"b","c":"c"}d)");
  // It fires before the failure of another node.
  BOOST_TEST(play(three_before({.count = 2}, {"c"})).line
             == R"(ab!cj{"a":"a","b":"b"}d)");
}

BOOST_AUTO_TEST_CASE(a_join_that_too_many_nodes_fail_names_them) {
  BOOST_TEST(play(three_before({.count = 2}, {"a", "c"})).line
             == "!ab!c| join 'j' needs 2 of its 3 inputs and has 1: node 'a' "
                "failed: broken; node 'c' failed: broken");
  BOOST_TEST(play(three_before({}, {"a", "b", "c"})).line
             == "!a!b!c| join 'j' needs 1 of its 3 inputs and has 0: node 'a' "
                "failed: broken; node 'b' failed: broken; node 'c' failed: "
                "broken");
  BOOST_TEST(
    play(three_before({.on_missing = missing_inputs::skip}, {"a", "b", "c"}))
      .line
    == "!a!b!cj{}-a-b-cd");
  BOOST_TEST(play(three_before({.count = 2, .on_missing = missing_inputs::skip},
                               {"a", "c"}))
               .line
             == R"(!ab!cj{"b":"b"}-a-cd)");
  BOOST_TEST(play(three_before({.count = 2, .on_missing = missing_inputs::drop},
                               {"a", "c"}))
               .line
             == "!ab!c");
}

BOOST_AUTO_TEST_CASE(a_failed_and_a_missing_input_are_both_named) {
  auto graph = three_before({}, {"b"});
  graph.edges[5] = {"c", "j", {"x"}};
  BOOST_TEST(play(graph).line
             == "a!bc| join 'j' needs 2 of its 3 inputs and has 1: node 'b' "
                "failed: broken; it also waits for c");
}

// Each round has its own failures.
BOOST_AUTO_TEST_CASE(a_failure_belongs_to_its_round) {
  played graph{.nodes = {"a", "b", "c", "j"},
               .joins = {{"j", {.on_failed = failed_inputs::skip}}},
               .edges = {{"START", "a"},
                         {"a", "b"},
                         {"a", "c"},
                         {"b", "j"},
                         {"c", "j"},
                         {"j", "a", {"again"}}},
               .outputs = {{"j1", {nullptr, {"again"}}}},
               .failing = {"b"}};
  BOOST_TEST(play(graph).line == R"(a!bcj{"c":"c"}-ba!bcj{"c":"c"}-b)");
  BOOST_TEST(play(graph, newest).line == R"(ac!bj{"c":"c"}-bac!bj{"c":"c"}-b)");
}

BOOST_AUTO_TEST_CASE(a_cycle_ends_at_the_limit_of_visits) {
  BOOST_TEST(play({{"a", "b"},
                   {},
                   {{"START", "a"},
                    {"a", "b"},
                    {.from = "b", .to = "a", .otherwise = true}},
                   {},
                   3})
               .line
             == "ababab| node 'a' was visited 3 times, its limit; the nodes of "
                "the cycle are a, b; raise visits_max, or check the routes");
}

BOOST_AUTO_TEST_CASE(several_ends_have_names) {
  const std::vector<workflow_edge> edges{
    {"START", "a"}, {"a", "b", {"x"}}, {"a", "c", {"y"}}};
  played graph{{"a", "b", "c"}, {}, edges, {{"a", {nullptr, {"x"}}}}};
  BOOST_TEST(play(graph).output == json({{"b", "b"}}));
  graph.outputs["a"].routes = {"x", "y"};
  BOOST_TEST(play(graph).output == json({{"b", "b"}, {"c", "c"}}));
  // No route fits: the path ends at a.
  graph.outputs["a"].routes = {"z"};
  BOOST_TEST(play(graph).output == json({{"a", "a"}}));
}

BOOST_AUTO_TEST_CASE(a_log_of_another_graph_is_a_conflict) {
  const auto graph
    = graph_of({{"a", "b"}, {}, {{"START", "a"}, {"a", "b"}}, {}});
  workflow_schedule schedule(*graph, message, true);
  const auto early = schedule.replay(1, 1, std::make_shared<const json>(1), {});
  BOOST_TEST((early.error().code() == errc::conflict));
  BOOST_TEST(early.error().message().find("'b'") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(branches_open_at_forks_and_close_at_joins) {
  const auto graph = graph_of({{"a", "b", "c", "j", "d"},
                               {{"j", {}}},
                               {{"START", "a"},
                                {"a", "b"},
                                {"a", "c"},
                                {"b", "j"},
                                {"c", "j"},
                                {"j", "d"}},
                               {}});
  workflow_schedule schedule(*graph, message, true);
  std::string branches;
  for (auto visit = schedule.next(); visit; visit = schedule.next()) {
    std::vector<workflow_visit> all{*visit};
    while (auto more = schedule.next())
      all.push_back(*more);
    for (const auto& each : all) {
      branches += name_of(*graph, each.node) + "=" + each.branch + " ";
      BOOST_TEST(
        schedule
          .end(each.node, each.ordinal, std::make_shared<const json>(1), {})
          .has_value());
    }
  }
  BOOST_TEST(branches == "a= b=b@1 c=c@1 j= d= ");
}

// Random graphs in random orders: every beginning of a log leads to the same
// end, and nothing that has ended runs again.
BOOST_AUTO_TEST_CASE(every_beginning_of_a_log_leads_to_the_same_end) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t count) {
      return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
    };
    played graph;
    graph.visits_max = 6;
    const auto count = 3 + below(5);
    for (std::size_t index = 0; index < count; ++index)
      graph.nodes.push_back(std::string(1, static_cast<char>('a' + index)));
    graph.edges.push_back({"START", "a"});
    for (std::size_t index = 1; index < count; ++index) {
      const auto before = 1 + below(std::min<std::size_t>(index, 2));
      std::set<std::size_t> froms;
      while (froms.size() < before)
        froms.insert(below(index));
      for (const auto from : froms)
        graph.edges.push_back({graph.nodes[from], graph.nodes[index]});
      if (froms.size() > 1 && below(2) == 0)
        graph.joins[graph.nodes[index]]
          = {.on_missing
             = below(2) == 0 ? missing_inputs::skip : missing_inputs::drop};
    }
    const auto back = 1 + below(count - 1);
    graph.edges.push_back({graph.nodes[back], "a", {"again"}});
    graph.outputs[graph.nodes[back] + "1"] = {nullptr, {"again"}};
    BOOST_TEST_CONTEXT("seed " << seed) {
      // A fixed order of visits, so that the rest is the same from each
      // beginning.
      const auto rank = [seed](const workflow_visit& visit) {
        return std::minstd_rand(static_cast<unsigned>(
          seed + 31 * visit.node + 1'009 * visit.ordinal))();
      };
      play(graph, [&](const std::vector<workflow_visit>& running) {
        return static_cast<std::size_t>(
          std::ranges::min_element(running, {}, rank) - running.begin());
      });
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
