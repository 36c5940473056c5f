#include "troupe/agents/drawings/marks.hpp"

#include "troupe/agents/drawings/line.hpp"
#include "troupe/agents/turns/node_event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace troupe::drawings {

namespace {

// Calls `visit` with a node and all nodes in it and beside it.
template <class Visit>
void each_node(node& from, const Visit& visit) {
  visit(from);
  for (auto& step : from.steps)
    each_node(step, visit);
  for (auto& used : from.uses)
    each_node(used.what, visit);
}

void set_state(node& to, node_state state, std::string words) {
  to.state = state;
  to.state_words = std::move(words);
}

// The nodes of a drawn workflow are behind START.
bool fits(const node& drawn, const workflow_view& seen) {
  return !seen.conflict && drawn.steps.size() == seen.nodes.size() + 1;
}

using newest_views = std::map<std::string_view, const workflow_view*>;

// Marks the workflows in a node. Below a node that has no visit, the newest
// view may be of an earlier round.
void mark_below(node& outer, const newest_views& newest) {
  const workflow_view* seen = nullptr;
  if (outer.kind == node_kind::workflow && !outer.is_repeated)
    if (const auto found = newest.find(outer.name);
        found != newest.end() && fits(outer, *found->second))
      seen = found->second;
  if (seen != nullptr)
    set_state(outer, seen->state, std::string(to_string(seen->state)));
  for (std::size_t place = 0; place < outer.steps.size(); ++place) {
    auto& step = outer.steps[place];
    if (seen != nullptr && place > 0) {
      const auto& known = seen->nodes[place - 1];
      set_state(step, known.state, words_of(known, *seen));
      if (known.visits == 0)
        continue;
    }
    mark_below(step, newest);
  }
  for (auto& used : outer.uses)
    mark_below(used.what, newest);
}

} // namespace

std::string words_of(const node_progress& shown, const workflow_view& in) {
  std::string words(shown.state == node_state::unreached
                      ? "not reached"
                      : to_string(shown.state));
  if (!shown.visit)
    return words;
  const auto& visit = in.visits[*shown.visit];
  if (visit.due)
    words += " until " + time_words(*visit.due);
  if (visit.number > 1)
    words += fmt::format(", visit {}", visit.number);
  if (visit.attempt > 1)
    words += fmt::format(", attempt {}", visit.attempt);
  if (visit.items > 0)
    words += fmt::format(", {} of {} items", visit.items_ended, visit.items);
  if (!visit.failures.empty() && visit.state != node_state::done)
    words += fmt::format(", {}", to_string(visit.failures.back().why.code()));
  return words;
}

void mark(node& root, const std::vector<workflow_view>& seen) {
  newest_views newest;
  for (const auto& each : seen)
    newest[each.name] = &each;
  mark_below(root, newest);
}

void point_at(node& root, const event& said) {
  std::set<std::string> names;
  const auto told = record_in(said);
  const bool is_visit = told && !told->node.empty();
  if (!is_visit) {
    names.insert(said.author);
    if (!said.actions.transfer_to_agent.empty())
      names.insert(said.actions.transfer_to_agent);
    for (const auto& each : said.content.parts) {
      if (const auto* call = each.call())
        names.insert(call->name);
      if (const auto* answer = each.response())
        names.insert(answer->name);
    }
  }
  each_node(root, [&](node& each) {
    if (names.contains(each.name) && each.kind != node_kind::start)
      each.is_current = true;
    if (is_visit && each.kind == node_kind::workflow
        && each.name == said.author)
      for (auto& step : each.steps)
        if (step.kind != node_kind::start && step.name == told->node)
          step.is_current = true;
  });
}

} // namespace troupe::drawings
