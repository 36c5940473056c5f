#include "troupe/agents/graphs/graph.hpp"

#include "troupe/agents/turns/name.hpp"
#include "troupe/core/support/blank.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace troupe {

namespace {

using number = workflow_graph::number;

std::string name_of_work(const workflow_node& described) {
  if (!described.name.empty())
    return described.name;
  if (const auto* which = std::get_if<agent>(&described.work))
    return which->name();
  if (const auto* which = std::get_if<tool>(&described.work))
    return which->name();
  if (const auto* all = std::get_if<map_over>(&described.work)) {
    if (const auto* which = std::get_if<agent>(&all->work))
      return which->name();
    if (const auto* which = std::get_if<tool>(&all->work))
      return which->name();
  }
  return {};
}

std::string shown(const route& value) {
  return to_text(troupe::to_json(value));
}

// 64 bits in hexadecimal digits, by FNV-1a: the same on every machine.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const auto byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x100000001b3U;
  }
  return fmt::format("{:016x}", hash);
}

constexpr std::array<std::string_view, 5> kinds{
  "agent", "function", "tool", "join", "map"};

// The function or the tool of a node, itself or for the items of a map; null
// for other work.
template <class Work>
const Work* work_of(const workflow_graph::node& which) {
  const auto* all = std::get_if<workflow_graph::mapped>(&which.work);
  return all != nullptr ? std::get_if<Work>(&all->work)
                        : std::get_if<Work>(&which.work);
}

// Returns true if one completion can follow both edges.
bool overlap(const workflow_graph::edge& one,
             const workflow_graph::edge& other) {
  if (one.otherwise || other.otherwise)
    return one.otherwise && other.otherwise;
  return std::ranges::any_of(one.routes, [&other](const route& each) {
    return std::ranges::find(other.routes, each) != other.routes.end();
  });
}

bool is_always(const workflow_graph::edge& each) {
  return each.routes.empty() && !each.otherwise;
}

// All numbers that can be reached along `next`, without the first ones unless a
// cycle leads back.
template <class Next>
std::vector<bool>
reached(std::size_t count, std::vector<number> open, const Next& next) {
  std::vector<bool> seen(count, false);
  while (!open.empty()) {
    const auto from = open.back();
    open.pop_back();
    next(from, [&](number to) {
      if (!seen[to]) {
        seen[to] = true;
        open.push_back(to);
      }
    });
  }
  return seen;
}

// Takes the agent, the function or the tool in `from`, which has one. Adds an
// agent to `agents`.
template <class From, class To>
void take_work(const From& from, To& to, std::vector<agent>& agents) {
  if (const auto* which = std::get_if<agent>(&from)) {
    to = agents.size();
    agents.push_back(*which);
  } else if (const auto* called = std::get_if<node_function>(&from)) {
    to = *called;
  } else {
    to = std::get<tool>(from);
  }
}

} // namespace

void workflow_graph::refuse(std::string why) const {
  throw error(errc::invalid_argument,
              fmt::format("workflow '{}': {}", name_, why));
}

workflow_graph::workflow_graph(std::string name,
                               const std::vector<workflow_node>& nodes,
                               const std::vector<workflow_edge>& edges,
                               std::vector<agent>& agents)
  : name_(std::move(name)) {
  nodes_.reserve(nodes.size());
  for (const auto& each : nodes) {
    auto& added = nodes_.emplace_back();
    added.name = name_of_work(each);
    if (added.name.empty())
      refuse(fmt::format("node {} has no name", nodes_.size()));
    if (!is_identifier(added.name))
      refuse(fmt::format("node name '{}' is not an identifier", added.name));
    if (added.name == workflow_start)
      refuse(fmt::format("a node cannot be named '{}': edges begin there",
                         workflow_start));
    if (!numbers_.try_emplace(added.name, nodes_.size() - 1).second)
      refuse(fmt::format("node name '{}' comes twice; names are unique",
                         added.name));
    if (const auto* all = std::get_if<map_over>(&each.work)) {
      mapped made{{}, all->lanes_max};
      take_work(all->work, made.work, agents);
      added.work = std::move(made);
    } else if (const auto* rule = std::get_if<join>(&each.work)) {
      added.work = *rule;
    } else {
      take_work(each.work, added.work, agents);
    }
    added.retry = each.retry;
    added.timeout = each.timeout;
    added.visits_max = each.visits_max;
  }
  const auto number_of = [&](const std::string& wanted, const char* end) {
    const auto found = find(wanted);
    if (found == start)
      refuse(fmt::format("an edge {} '{}', which is no node", end, wanted));
    return found;
  };
  for (const auto& each : edges) {
    if (each.to == workflow_start)
      refuse(fmt::format("the edge from '{}' leads to {}, where no edge can "
                         "lead; name the node behind {}",
                         each.from,
                         workflow_start,
                         workflow_start));
    const auto from
      = each.from == workflow_start ? start : number_of(each.from, "begins at");
    const auto to = number_of(each.to, "leads to");
    auto& leaves = from == start ? start_leaves_ : nodes_[from].leaves;
    leaves.push_back(edges_.size());
    edges_.push_back({from, to, each.routes, each.otherwise});
  }
  for (const auto place : start_leaves_)
    if (auto& before = nodes_[edges_[place].to].before; before.empty())
      before.push_back(start);
  for (number from = 0; from < nodes_.size(); ++from)
    for (const auto place : nodes_[from].leaves)
      if (auto& before = nodes_[edges_[place].to].before;
          before.empty() || before.back() != from)
        before.push_back(from);
  for (number each = 0; each < nodes_.size(); ++each)
    if (std::ranges::none_of(nodes_[each].leaves, [this](auto place) {
          return is_always(edges_[place]) || edges_[place].otherwise;
        }))
      ends_.push_back(each);
  for (const auto& each : nodes_) {
    const auto& rules = each.retry;
    if (each.visits_max == 0)
      refuse(fmt::format("node '{}': visits_max is 0", each.name));
    if (each.timeout && each.timeout->count() <= 0)
      refuse(fmt::format("node '{}': timeout is not above 0", each.name));
    if (rules.attempts_max == 0)
      refuse(fmt::format("node '{}': attempts_max is 0; it counts the first "
                         "attempt, too",
                         each.name));
    constexpr std::chrono::hours most{24 * 36'500};
    if ((each.timeout && *each.timeout > most) || rules.first_delay > most
        || rules.delay_max > most)
      refuse(fmt::format("node '{}': a time is above 100 years", each.name));
    // Written so that NaN is refused.
    if (!(rules.factor >= 1) || !(rules.jitter >= 0 && rules.jitter <= 1)
        || rules.first_delay.count() < 0 || rules.delay_max.count() < 0)
      refuse(fmt::format("node '{}': a retry has a factor from 1, a jitter "
                         "from 0 to 1, and no delay below 0",
                         each.name));
    if (const auto* called = work_of<node_function>(each);
        called != nullptr && !*called)
      refuse(fmt::format("node '{}' has no function", each.name));
    if (const auto* all = std::get_if<mapped>(&each.work);
        all != nullptr && all->lanes_max == std::size_t{0})
      refuse(fmt::format("map '{}': lanes_max is 0", each.name));
    if (const auto* which = work_of<tool>(each)) {
      const auto& options = which->options();
      if (!which->can_be_called())
        refuse(fmt::format("node '{}': tool '{}' only prepares requests",
                           each.name,
                           which->name()));
      if (options.long_running)
        refuse(fmt::format("node '{}': tool '{}' is answered from outside; "
                           "give it to an LLM agent",
                           each.name,
                           which->name()));
    }
  }
  check_edges();
  check_cycles();
  check_joins();
  for (number each = 0; each < nodes_.size(); ++each)
    if (std::holds_alternative<join>(nodes_[each].work))
      joins_.push_back(each);
  rank_nodes();
  structure_ = make_structure();
}

void workflow_graph::check_edges() const {
  if (start_leaves_.empty())
    refuse(fmt::format("no edge begins at {}", workflow_start));
  const auto name_at = [this](number which) -> std::string {
    return which == start ? workflow_start : nodes_[which].name;
  };
  const auto refuse_edge = [&](const edge& each, std::string_view why) {
    refuse(fmt::format("the edge from '{}' to '{}' {}",
                       name_at(each.from),
                       name_at(each.to),
                       why));
  };
  std::map<std::pair<number, number>, std::vector<const edge*>> pairs;
  for (const auto& each : edges_) {
    if (each.from == start && !is_always(each))
      refuse_edge(each, "has a route, but START gives none");
    if (each.from != start && !each.routes.empty()
        && std::holds_alternative<mapped>(nodes_[each.from].work))
      refuse_edge(each,
                  "has a route, but a map gives none; put a function between "
                  "them that chooses the route");
    if (each.otherwise && !each.routes.empty())
      refuse_edge(each,
                  "has routes and is marked otherwise; make it two edges");
    auto& same = pairs[{each.from, each.to}];
    for (const auto* other : same) {
      if (is_always(each) || is_always(*other))
        refuse_edge(each,
                    "is written twice, once without a route; remove "
                    "one of them");
      if (overlap(each, *other))
        refuse_edge(each,
                    "is written twice for the same route; remove one, or "
                    "name each route once");
    }
    same.push_back(&each);
  }
  const auto seen
    = reached(nodes_.size(), {start}, [this](number from, const auto& visit) {
        for (const auto place :
             from == start ? start_leaves_ : nodes_[from].leaves)
          visit(edges_[place].to);
      });
  for (number each = 0; each < nodes_.size(); ++each)
    if (!seen[each])
      refuse(fmt::format("no path leads from {} to node '{}'",
                         workflow_start,
                         nodes_[each].name));
}

// A cycle of edges that are always followed never ends. Removes the nodes
// without such an edge from a node that is left; a cycle stays.
void workflow_graph::check_cycles() const {
  std::vector<std::size_t> open(nodes_.size(), 0);
  for (const auto& each : edges_)
    if (each.from != start && is_always(each))
      ++open[each.to];
  std::vector<number> free;
  for (number each = 0; each < nodes_.size(); ++each)
    if (open[each] == 0)
      free.push_back(each);
  auto left = nodes_.size();
  while (!free.empty()) {
    const auto from = free.back();
    free.pop_back();
    --left;
    for (const auto place : nodes_[from].leaves)
      if (is_always(edges_[place]) && --open[edges_[place].to] == 0)
        free.push_back(edges_[place].to);
  }
  if (left == 0)
    return;
  // Walks back along such edges from a node that is left: this comes to a node
  // for the second time.
  number here = 0;
  while (open[here] == 0)
    ++here;
  std::vector<number> walked;
  while (std::ranges::find(walked, here) == walked.end()) {
    walked.push_back(here);
    here = std::ranges::find_if(edges_, [&](const edge& each) {
             return each.to == here && each.from != start && is_always(each)
                    && open[each.from] > 0;
           })->from;
  }
  std::string names = nodes_[here].name;
  for (auto each = walked.rbegin(); each != walked.rend(); ++each) {
    names += " -> " + nodes_[*each].name;
    if (*each == here)
      break;
  }
  refuse(fmt::format("the cycle {} never ends: all of its edges are always "
                     "followed; give one of them a route",
                     names));
}

void workflow_graph::check_joins() const {
  for (const auto& each : nodes_) {
    const auto* rule = std::get_if<join>(&each.work);
    if (rule == nullptr || !rule->count)
      continue;
    if (*rule->count == 0 || *rule->count > each.before.size())
      refuse(fmt::format("join '{}' has a count of {}, and {} nodes before it",
                         each.name,
                         *rule->count,
                         each.before.size()));
  }
  for (number each = 0; each < nodes_.size(); ++each) {
    const auto* rule = std::get_if<join>(&nodes_[each].work);
    if (rule == nullptr || rule->on_failed != failed_inputs::skip)
      continue;
    if (std::ranges::none_of(nodes_[each].before, [this](number before) {
          return before != start && skips_failure_of(before);
        }))
      refuse(fmt::format("join '{}' skips failed inputs, but the failure of "
                         "each node before it ends the workflow: a node whose "
                         "failure is skipped leads to joins alone that skip it",
                         nodes_[each].name));
  }
}

bool workflow_graph::skips_failure_of(number which) const {
  const auto& asked = nodes_[which];
  return !asked.leaves.empty() && !std::holds_alternative<join>(asked.work)
         && std::ranges::all_of(asked.leaves, [this](std::size_t place) {
              const auto* rule
                = std::get_if<join>(&nodes_[edges_[place].to].work);
              return rule != nullptr && rule->on_failed == failed_inputs::skip;
            });
}

number workflow_graph::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? start : found->second;
}

std::vector<number>
workflow_graph::followed(number from, const std::vector<route>& routes) const {
  const auto& leaves = from == start ? start_leaves_ : nodes_[from].leaves;
  std::vector<number> targets;
  std::vector<number> defaults;
  bool is_matched = false;
  for (const auto place : leaves) {
    const auto& each = edges_[place];
    const bool fits = std::ranges::any_of(each.routes, [&](const route& one) {
      return std::ranges::find(routes, one) != routes.end();
    });
    is_matched = is_matched || fits;
    if (fits || is_always(each))
      targets.push_back(each.to);
    else if (each.otherwise)
      defaults.push_back(each.to);
  }
  if (!is_matched)
    targets.insert(targets.end(), defaults.begin(), defaults.end());
  return targets;
}

std::optional<route> workflow_graph::route_of(number from,
                                              const json& output) const {
  auto value = route_from_json(output.is_string() ? json(std::string(
                                 trimmed(output.get_ref<const std::string&>())))
                                                  : output);
  if (!value)
    return std::nullopt;
  for (const auto place : nodes_[from].leaves)
    if (const auto& routes = edges_[place].routes;
        std::ranges::find(routes, *value) != routes.end())
      return std::move(*value);
  return std::nullopt;
}

// Strong components are numbered from the end of the edges on.
void workflow_graph::rank_nodes() {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> plain(
    nodes_.size());
  for (const auto& each : edges_)
    if (each.from != start)
      boost::add_edge(each.from, each.to, plain);
  ranks_.resize(nodes_.size());
  const std::size_t count = boost::strong_components(
    plain,
    boost::make_iterator_property_map(ranks_.begin(),
                                      boost::get(boost::vertex_index, plain)));
  for (auto& each : ranks_)
    each = count - 1 - each;
}

bool workflow_graph::encloses(number from, number join) const {
  auto seen = reached(
    nodes_.size(), {from}, [this, join](number at, const auto& visit) {
      for (const auto place : at == start ? start_leaves_ : nodes_[at].leaves)
        if (edges_[place].to != join)
          visit(edges_[place].to);
    });
  if (from != start)
    seen[from] = true;
  return std::ranges::all_of(nodes_[join].before, [&](number each) {
    return each == start ? from == start : bool{seen[each]};
  });
}

std::vector<std::string> workflow_graph::cycle_of(number which) const {
  std::vector<std::string> names;
  const auto ahead
    = reached(nodes_.size(), {which}, [this](number at, const auto& visit) {
        for (const auto place : nodes_[at].leaves)
          visit(edges_[place].to);
      });
  const auto behind
    = reached(nodes_.size(), {which}, [this](number at, const auto& visit) {
        for (const auto each : nodes_[at].before)
          if (each != start)
            visit(each);
      });
  for (number each = 0; each < nodes_.size(); ++each)
    if (ahead[each] && behind[each])
      names.push_back(nodes_[each].name);
  return names;
}

json workflow_graph::make_structure() const {
  auto all = json::array();
  const auto add = [&](std::string_view name,
                       std::string_view kind,
                       const std::vector<std::size_t>& leaves) -> json& {
    auto targets = json::array();
    for (const auto place : leaves) {
      const auto& each = edges_[place];
      std::string told = nodes_[each.to].name;
      for (const auto& one : each.routes)
        told += " " + shown(one);
      if (each.otherwise)
        told += " otherwise";
      targets.push_back(std::move(told));
    }
    auto row = json::object();
    row["name"] = name;
    row["kind"] = kind;
    row["edges"] = std::move(targets);
    return all.emplace_back(std::move(row));
  };
  add(workflow_start, "start", start_leaves_);
  for (const auto& each : nodes_) {
    auto& row = add(each.name, kind_of(each), each.leaves);
    if (const auto* map = std::get_if<mapped>(&each.work))
      row["each"] = kinds.at(map->work.index());
    const auto* rule = std::get_if<join>(&each.work);
    if (rule == nullptr)
      continue;
    // Without a count, failed inputs lower the number that is awaited.
    if (rule->count || rule->on_failed == failed_inputs::fail)
      row["count"] = rule->count.value_or(each.before.size());
    row["onMissing"] = static_cast<int>(rule->on_missing);
    // Absent by default, so that runs of earlier versions go on.
    if (rule->on_failed != failed_inputs::fail)
      row["onFailed"] = static_cast<int>(rule->on_failed);
  }
  auto data = json::object();
  data["nodes"] = std::move(all);
  const auto text = to_text(data);
  if (text.size() <= structure_bytes_max)
    return data;
  auto shortened = json::object();
  shortened["hash"] = hash_of(text);
  return shortened;
}

std::string_view kind_of(const workflow_graph::node& which) {
  return kinds.at(which.work.index());
}

const std::size_t* agent_of(const workflow_graph::node& which) {
  return work_of<std::size_t>(which);
}

std::string difference_of(const json& before, const json& now) {
  const auto rows_of = [](const json& from) {
    std::map<std::string, json> rows;
    if (from.is_object() && from.contains("nodes")
        && from.at("nodes").is_array())
      for (const auto& row : from.at("nodes"))
        if (row.is_object() && row.contains("name")
            && row.at("name").is_string())
          rows[row.at("name").get<std::string>()] = row;
    return rows;
  };
  if (before.contains("hash") || now.contains("hash"))
    return "its nodes or edges have changed";
  const auto old_rows = rows_of(before);
  const auto new_rows = rows_of(now);
  for (const auto& [name, row] : old_rows) {
    const auto found = new_rows.find(name);
    if (found == new_rows.end())
      return fmt::format("node '{}' is missing", name);
    if (found->second != row)
      return fmt::format("node '{}' was {} and is {}",
                         name,
                         to_text(row),
                         to_text(found->second));
  }
  for (const auto& [name, row] : new_rows)
    if (!old_rows.contains(name))
      return fmt::format("node '{}' is new", name);
  return "the order of its nodes has changed";
}

} // namespace troupe
