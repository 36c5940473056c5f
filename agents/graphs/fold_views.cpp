// Makes the views of workflows: states of visits, of nodes, and of each whole.

#include "troupe/agents/graphs/fold.hpp"

#include <algorithm>
#include <map>

namespace troupe {

namespace {

using number = workflow_graph::number;

bool is_over(node_state state) {
  return state == node_state::done || state == node_state::failed
         || state == node_state::cancelled;
}

} // namespace

void workflow_fold::show_visits(const instance& on,
                                workflow_view& made,
                                bool is_dead) const {
  for (const auto& each : on.visits) {
    auto& shown = made.visits.emplace_back(each.shown);
    if (!is_over(shown.state) && is_dead) {
      shown.state = node_state::cancelled;
      shown.due.reset();
    }
  }
  if (!on.schedule)
    return;
  for (number node = 0; node < on.graph->nodes().size(); ++node)
    for (auto ordinal = on.started[node] + 1;
         ordinal <= on.schedule->visits(node);
         ++ordinal) {
      auto& shown = made.visits.emplace_back();
      shown.node = on.graph->nodes()[node].name;
      shown.number = ordinal;
      shown.state = is_dead ? node_state::cancelled : node_state::waiting;
    }
}

void workflow_fold::show_nodes(const instance& on, workflow_view& made) const {
  std::map<std::string, std::size_t> places;
  const auto add = [&](const std::string& name, std::string kind) {
    places.emplace(name, made.nodes.size());
    made.nodes.push_back({.name = name, .kind = std::move(kind)});
  };
  if (on.graph != nullptr) {
    const auto& nodes = on.graph->nodes();
    for (number node = 0; node < nodes.size(); ++node)
      add(nodes[node].name,
          on.known != nullptr ? std::string(kind_of(nodes[node]))
                              : on.recorded.kinds[node]);
    for (const auto& each : on.graph->edges())
      made.edges.push_back({.from = each.from == workflow_graph::start
                                      ? workflow_start
                                      : nodes[each.from].name,
                            .to = nodes[each.to].name,
                            .routes = each.routes,
                            .otherwise = each.otherwise});
  }
  for (std::size_t place = 0; place < made.visits.size(); ++place) {
    const auto& each = made.visits[place];
    if (!places.contains(each.node))
      add(each.node, "");
    auto& node = made.nodes[places.at(each.node)];
    ++node.visits;
    if (node.visit && !is_over(node.state))
      continue;
    node.visit = place;
    node.state = each.state;
  }
  if (!on.schedule)
    return;
  // A node can still be reached from those that have not ended.
  const auto& nodes = on.graph->nodes();
  std::vector<number> open;
  std::vector<bool> is_reached(nodes.size(), false);
  for (number node = 0; node < nodes.size(); ++node) {
    auto& shown = made.nodes[node];
    const bool gathers = on.schedule->gathers(node);
    if (gathers && !is_over(made.state)
        && (!shown.visit || is_over(shown.state))) {
      shown.state = node_state::waiting;
      shown.visit.reset();
    }
    if (gathers && on.failure && on.failure->code() == errc::stuck_join)
      shown.state = node_state::failed;
    if (gathers || (shown.visit && !is_over(shown.state)))
      open.push_back(node);
  }
  while (!is_over(made.state) && !open.empty()) {
    const auto from = open.back();
    open.pop_back();
    for (const auto place : nodes[from].leaves)
      if (const auto to = on.graph->edges()[place].to; !is_reached[to]) {
        is_reached[to] = true;
        open.push_back(to);
      }
  }
  for (number node = 0; node < nodes.size(); ++node)
    if (auto& shown = made.nodes[node];
        shown.state == node_state::unreached && !is_reached[node])
      shown.state = node_state::skipped;
}

node_state workflow_fold::state_of(const instance& on,
                                   const workflow_view& made,
                                   bool is_dead) {
  if (on.is_done)
    return node_state::done;
  if (on.failure)
    return node_state::failed;
  if (is_dead)
    return node_state::cancelled;
  const auto has = [&made](node_state state) {
    return std::ranges::any_of(made.visits, [state](const auto& each) {
      return each.state == state && !each.is_skipped;
    });
  };
  if (has(node_state::running) || has(node_state::waiting))
    return node_state::running;
  if (has(node_state::failed))
    return node_state::failed;
  return has(node_state::paused) ? node_state::paused : node_state::running;
}

std::vector<workflow_view> workflow_fold::workflows() const {
  std::vector<workflow_view> all(workflows_.size());
  std::vector<bool> is_dead(workflows_.size());
  // Workflows come behind those around them.
  for (std::size_t place = 0; place < all.size(); ++place) {
    const auto& on = workflows_[place];
    is_dead[place] = on.is_done || on.failure || on.is_cancelled
                     || (on.parent && is_dead[on.parent->workflow]);
    show_visits(on, all[place], is_dead[place]);
  }

  // Numbers of the workflows inside of a visit.
  struct inner_states {
    std::size_t paused = 0;
    std::size_t running = 0;
  };

  std::map<std::pair<std::size_t, std::size_t>, inner_states> inside_of;
  for (auto place = all.size(); place-- > 0;) {
    const auto& on = workflows_[place];
    auto& made = all[place];
    made.name = on.name;
    made.path = on.at.path;
    made.run = on.at.run;
    made.invocations = on.invocations;
    made.failure = on.failure;
    made.conflict = on.conflict;
    made.began = on.began;
    made.ended = on.ended;
    made.state = state_of(on, made, is_dead[place]);
    show_nodes(on, made);
    if (!on.parent)
      continue;
    const auto& outer = workflows_[on.parent->workflow];
    const auto& around = outer.visits[on.parent->visit].shown;
    made.parent = path_of(outer.at, around.node, around.number);
    auto& above = all[on.parent->workflow].visits[on.parent->visit];
    auto& inside = inside_of[{on.parent->workflow, on.parent->visit}];
    inside.paused += made.state == node_state::paused ? 1U : 0U;
    inside.running += made.state == node_state::running ? 1U : 0U;
    // A map also has items that wait for their turn, or that have ended.
    if (above.state == node_state::running && inside.paused > 0
        && inside.running == 0
        && inside.paused + above.items_ended >= above.items)
      above.state = node_state::paused;
    else if (above.state == node_state::paused && inside.running > 0)
      above.state = node_state::running;
  }
  return all;
}

} // namespace troupe
