#include "troupe/agents/drawings/adk_form.hpp"

#include <algorithm>

namespace troupe::drawings {

namespace {

constexpr auto start_name = "__START__";
constexpr auto default_route = "__DEFAULT__";

bool is_agent(const use& shown) {
  return shown.how != relation::tool && shown.how != relation::call;
}

// The agents that a node contains: ADK calls them sub-agents, also where they
// are the steps of a flow. Agents that are tools are none.
template <class Visit>
void each_below(const node& outer, Visit visit) {
  for (const auto& step : outer.steps)
    visit(step);
  for (const auto& used : outer.uses)
    if (is_agent(used))
      visit(used.what);
}

std::string_view type_of(node_kind kind) {
  switch (kind) {
  case node_kind::workflow:
    return "workflow";
  case node_kind::start:
    return "start";
  case node_kind::function:
    return "function";
  case node_kind::join:
    return "join";
  case node_kind::tool:
  case node_kind::toolset:
  case node_kind::vendor_tool:
    return "tool";
  default:
    return "agent";
  }
}

std::string name_of(const node& shown) {
  return shown.kind == node_kind::start ? start_name : shown.name;
}

json tools_of(const node& shown) {
  auto tools = json::array();
  const auto add = [&tools](const json& name) {
    auto entry = json::object();
    entry["name"] = name;
    entry["type"] = "tool";
    tools.push_back(std::move(entry));
  };
  for (const auto& used : shown.uses) {
    if (is_agent(used))
      continue;
    const auto known = std::ranges::find(used.what.facts, "tools", &fact::name);
    if (known != used.what.facts.end() && !known->data.empty())
      std::ranges::for_each(known->data, add);
    else
      add(used.what.name);
  }
  return tools;
}

json node_of_graph(const node& shown) {
  auto made
    = shown.kind == node_kind::start ? json::object() : to_adk_form(shown);
  made["name"] = name_of(shown);
  made["type"] = type_of(shown.kind);
  made.emplace("rerun_on_resume", false);
  return made;
}

// An end of an edge. The node itself stands for the start of its flow.
json end_of(const node& outer, std::optional<std::size_t> place) {
  auto made = json::object();
  made["name"] = place ? name_of(outer.steps.at(*place)) : start_name;
  made["type"] = place ? type_of(outer.steps.at(*place).kind) : "start";
  return made;
}

json graph_of(const node& shown) {
  auto graph = json::object();
  auto& nodes = graph["nodes"] = json::array();
  for (const auto& step : shown.steps)
    nodes.push_back(node_of_graph(step));
  auto& edges = graph["edges"] = json::array();
  for (const auto& each : shown.edges) {
    auto made = json::object();
    made["from_node"] = end_of(shown, each.from);
    made["to_node"] = end_of(shown, each.to);
    if (each.is_default)
      made["route"] = default_route;
    else if (!each.label.empty())
      made["route"] = each.label;
    edges.push_back(std::move(made));
  }
  return graph;
}

bool is_workflow(const node& shown) {
  return shown.order == flow::routed && !shown.steps.empty();
}

void collect_workflows(
  const node& shown,
  const std::string& path,
  std::vector<std::pair<std::string, const node*>>& found) {
  if (is_workflow(shown))
    found.emplace_back(path, &shown);
  each_below(shown, [&](const node& below) {
    collect_workflows(
      below, path.empty() ? below.name : path + '/' + below.name, found);
  });
}

} // namespace

json to_adk_form(const node& shown) {
  auto made = json::object();
  made["name"] = shown.name;
  made["description"] = shown.description;
  made["rerun_on_resume"] = false;
  made["wait_for_output"] = false;
  auto& below = made["sub_agents"] = json::array();
  if (is_workflow(shown))
    made["graph"] = graph_of(shown);
  else
    each_below(shown,
               [&](const node& each) { below.push_back(to_adk_form(each)); });
  if (shown.kind == node_kind::llm)
    made["tools"] = tools_of(shown);
  for (const auto& each : shown.facts)
    if (!each.name.empty())
      made[each.name] = each.data;
  return made;
}

const node* find_below(const node& root, std::string_view path) {
  const auto* found = &root;
  bool is_first = true;
  while (!path.empty()) {
    const auto name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (name.empty() || (std::exchange(is_first, false) && name == root.name))
      continue;
    const node* next = nullptr;
    each_below(*found, [&](const node& each) {
      if (next == nullptr && each.name == name)
        next = &each;
    });
    if (next == nullptr)
      return nullptr;
    found = next;
  }
  return found;
}

std::vector<std::pair<std::string, const node*>>
workflows_below(const node& root, const std::string& path) {
  std::vector<std::pair<std::string, const node*>> found;
  collect_workflows(root, path, found);
  return found;
}

} // namespace troupe::drawings
