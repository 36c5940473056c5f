#include "troupe/agents/graphs/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {

namespace {

using number = workflow_graph::number;

template <class Sequence>
Sequence common_beginning(const Sequence& one, const Sequence& other) {
  const auto common = std::min(one.size(), other.size());
  const auto end
    = std::mismatch(one.begin(),
                    one.begin() + static_cast<std::ptrdiff_t>(common),
                    other.begin())
        .first;
  return Sequence(one.begin(), end);
}

// The segments of both branches that are equal from the first one on.
std::string common_branch(const std::string& one, const std::string& other) {
  auto common = common_beginning(one, other);
  const auto ends_segment = [&common](const std::string& whole) {
    return whole.size() == common.size() || whole[common.size()] == '.';
  };
  if (ends_segment(one) && ends_segment(other))
    return common;
  const auto dot = common.rfind('.');
  return dot == std::string::npos ? std::string() : common.substr(0, dot);
}

} // namespace

workflow_schedule::workflow_schedule(const workflow_graph& graph,
                                     std::shared_ptr<const json> input,
                                     bool is_message)
  : graph_(graph),
    nodes_(graph.nodes().size()),
    outputs_(graph.nodes().size()) {
  token first;
  first.from = workflow_graph::start;
  first.value = std::move(input);
  first.is_message = is_message;
  const auto targets = graph_.followed(workflow_graph::start, {});
  if (targets.size() > 1)
    add_passage(first.passed, workflow_graph::start, 1, {});
  // The first visit of a node is always within its limit.
  static_cast<void>(follow(std::move(first), targets));
}

std::optional<workflow_visit> workflow_schedule::next() {
  return ready_.empty() ? std::nullopt : start(ready_.front());
}

std::optional<workflow_visit> workflow_schedule::start(number node) {
  const auto place = std::ranges::find(ready_, node);
  if (place == ready_.end())
    return std::nullopt;
  ready_.erase(place);
  auto& from = nodes_[node];
  from.running = std::move(from.queue.front());
  from.queue.pop_front();
  ++running_;
  return from.running->visit;
}

result<workflow_schedule::waiting_visit>
workflow_schedule::take_running(number node, std::uint64_t ordinal) {
  auto& at = nodes_[node];
  if (!at.running || at.running->visit.ordinal != ordinal)
    return error(errc::internal,
                 fmt::format("visit {} of node '{}' ended, but does not run",
                             ordinal,
                             graph_.nodes()[node].name));
  auto ended = std::move(*at.running);
  at.running.reset();
  --running_;
  if (!at.queue.empty())
    ready_.push_back(node);
  return ended;
}

result<void> workflow_schedule::end(number node,
                                    std::uint64_t ordinal,
                                    std::shared_ptr<const json> output,
                                    const std::vector<route>& routes) {
  auto ended = take_running(node, ordinal);
  if (!ended)
    return ended.error();
  const auto targets = graph_.followed(node, routes);
  if (targets.empty()) {
    outputs_[node] = std::move(output);
    return {};
  }
  token value;
  value.from = node;
  value.value = std::move(output);
  value.passed = std::move(ended->passed);
  value.branch = std::move(ended->visit.branch);
  return leave(node, ordinal, std::move(value), targets);
}

// A node that has failed gives no route, so none of the joins behind it will
// get an input: each of them is told.
result<void>
workflow_schedule::skip(number node, std::uint64_t ordinal, std::string why) {
  auto ended = take_running(node, ordinal);
  if (!ended)
    return ended.error();
  std::vector<number> targets;
  for (const auto place : graph_.nodes()[node].leaves)
    if (const auto to = graph_.edges()[place].to;
        std::ranges::find(targets, to) == targets.end())
      targets.push_back(to);
  token value;
  value.from = node;
  value.passed = std::move(ended->passed);
  value.branch = std::move(ended->visit.branch);
  value.failure = std::move(why);
  return leave(node, ordinal, std::move(value), targets);
}

result<void> workflow_schedule::leave(number node,
                                      std::uint64_t ordinal,
                                      token left,
                                      const std::vector<number>& targets) {
  const auto before = go_back(left.passed, node);
  if (before)
    left.branch = *before;
  const bool is_join = std::holds_alternative<join>(graph_.nodes()[node].work);
  if (targets.size() > 1 || before || is_join)
    add_passage(left.passed, node, ordinal, left.branch);
  return follow(std::move(left), targets);
}

// Drops the passage of a node, and those that were added while the token had
// it. Returns the branch of the passage; unset if there is none.
std::optional<std::string> workflow_schedule::go_back(passages& passed,
                                                      number to) {
  const auto found = std::ranges::find_if(
    passed, [to](const auto& each) { return each->node == to; });
  if (found == passed.end())
    return std::nullopt;
  auto branch = (*found)->branch;
  std::erase_if(passed, [to](const auto& each) {
    return each->node == to
           || std::ranges::find(each->behind, to) != each->behind.end();
  });
  return branch;
}

void workflow_schedule::add_passage(passages& passed,
                                    number node,
                                    std::uint64_t ordinal,
                                    std::string branch) {
  auto made = std::make_shared<passage>();
  made->node = node;
  made->ordinal = ordinal;
  made->branch = std::move(branch);
  for (const auto& each : passed)
    made->behind.push_back(each->node);
  passed.push_back(std::move(made));
}

// Starts the visit whose end the log has next.
result<void> workflow_schedule::take_next(number node, std::uint64_t ordinal) {
  auto& at = nodes_[node];
  const auto is_next = [&at, ordinal] {
    return !at.running && !at.queue.empty()
           && at.queue.front().visit.ordinal == ordinal;
  };
  if (!is_next() && is_idle())
    if (auto settled = settle(); !settled)
      return settled.error();
  if (!is_next() || !start(node))
    return error(
      errc::conflict,
      fmt::format("the session has the end of visit {} of node '{}', "
                  "which the workflow of the program does not reach "
                  "there; the workflow was changed",
                  ordinal,
                  graph_.nodes()[node].name));
  return {};
}

result<void> workflow_schedule::replay(number node,
                                       std::uint64_t ordinal,
                                       std::shared_ptr<const json> output,
                                       const std::vector<route>& routes) {
  if (auto taken = take_next(node, ordinal); !taken)
    return taken;
  return end(node, ordinal, std::move(output), routes);
}

result<void> workflow_schedule::replay_skip(number node,
                                            std::uint64_t ordinal,
                                            std::string why) {
  if (!graph_.skips_failure_of(node))
    return error(errc::conflict,
                 fmt::format("the session goes on without node '{}', which has "
                             "failed, and the workflow of the program does not",
                             graph_.nodes()[node].name));
  if (auto taken = take_next(node, ordinal); !taken)
    return taken;
  return skip(node, ordinal, std::move(why));
}

result<void> workflow_schedule::follow(token value,
                                       const std::vector<number>& targets) {
  for (const auto to : targets) {
    auto sent = value;
    // The number makes the branch another one in each round.
    if (targets.size() > 1)
      sent.branch += fmt::format("{}{}@{}",
                                 sent.branch.empty() ? "" : ".",
                                 graph_.nodes()[to].name,
                                 ++nodes_[to].branches);
    if (auto arrived = arrive(to, std::move(sent)); !arrived)
      return arrived.error();
  }
  return {};
}

result<void> workflow_schedule::arrive(number at, token arrived) {
  if (std::holds_alternative<join>(graph_.nodes()[at].work))
    return gather(at, std::move(arrived));
  workflow_visit visit;
  visit.input = std::move(arrived.value);
  visit.is_message = arrived.is_message;
  visit.branch = std::move(arrived.branch);
  return put(at, std::move(visit), std::move(arrived.passed));
}

// A token that has passed the join since it fired belongs to a later round.
bool workflow_schedule::fit(number at,
                            const gathering& inputs,
                            const token& arrived) {
  return !inputs.froms.contains(arrived.from)
         && std::ranges::all_of(arrived.passed, [&](const auto& each) {
              if (each->node == at && inputs.fired_as != 0
                  && each->ordinal >= inputs.fired_as)
                return false;
              const auto known = inputs.rounds.find(each->node);
              return known == inputs.rounds.end()
                     || known->second == each->ordinal;
            });
}

result<void> workflow_schedule::gather(number at, token arrived) {
  auto& all = nodes_[at].gatherings;
  auto inputs = std::ranges::find_if(
    all, [&](const gathering& each) { return fit(at, each, arrived); });
  if (inputs == all.end())
    inputs = all.emplace(all.end());
  inputs->froms.insert(arrived.from);
  for (const auto& each : arrived.passed)
    inputs->rounds.emplace(each->node, each->ordinal);
  result<void> fired;
  if (inputs->fired_as == 0) {
    if (arrived.failure)
      inputs->failed.emplace(arrived.from, std::move(arrived));
    else
      inputs->tokens.push_back(std::move(arrived));
    if (inputs->tokens.size() == wanted_by(at, *inputs))
      fired = fire(at, *inputs);
  }
  // The others of the round are still to come, and are dropped then. A join
  // that too many nodes before it have failed stays: `settle` decides about it.
  if (inputs->froms.size() == graph_.nodes()[at].before.size()
      && inputs->fired_as != 0)
    all.erase(inputs);
  return fired;
}

// The number of inputs with which a join fires at once.
std::size_t workflow_schedule::wanted_by(number at,
                                         const gathering& inputs) const {
  const auto& node = graph_.nodes()[at];
  const auto& rule = std::get<join>(node.work);
  if (rule.count)
    return *rule.count;
  return std::max<std::size_t>(node.before.size() - inputs.failed.size(), 1);
}

result<void> workflow_schedule::fire(number at, gathering& inputs) {
  const auto& node = graph_.nodes()[at];
  workflow_visit visit;
  auto values = json::object();
  for (const auto& each : inputs.tokens)
    values[each.from == workflow_graph::start ? std::string(workflow_start)
                                              : graph_.nodes()[each.from].name]
      = *each.value;
  passages passed;
  bool is_first = true;
  const auto join_with = [&](const token& each) {
    for (const auto& one : each.passed)
      if (std::ranges::none_of(
            passed,
            [&one](const auto& known) { return known->node == one->node; })
          && encloses(one->node, at))
        passed.push_back(one);
    visit.branch = std::exchange(is_first, false)
                     ? each.branch
                     : common_branch(visit.branch, each.branch);
  };
  for (const auto& each : inputs.tokens)
    join_with(each);
  // A join may fire although all nodes before it have failed.
  if (inputs.tokens.empty())
    for (const auto& [from, left] : inputs.failed)
      join_with(left);
  const auto& rule = std::get<join>(node.work);
  if (inputs.tokens.size() < rule.count.value_or(node.before.size()))
    visit.missing = missing_in(at, inputs);
  visit.input = std::make_shared<const json>(std::move(values));
  inputs.tokens.clear();
  inputs.fired_as = nodes_[at].visits + 1;
  return put(at, std::move(visit), std::move(passed));
}

result<void>
workflow_schedule::put(number at, workflow_visit visit, passages passed) {
  auto& node = nodes_[at];
  const auto& known = graph_.nodes()[at];
  if (node.visits == known.visits_max)
    return error(
      errc::limit_exceeded,
      fmt::format("node '{}' was visited {} times, its limit; the nodes of the "
                  "cycle are {}; raise visits_max, or check the routes",
                  known.name,
                  node.visits,
                  fmt::join(graph_.cycle_of(at), ", ")));
  visit.node = at;
  visit.ordinal = ++node.visits;
  if (node.queue.empty() && !node.running)
    ready_.push_back(at);
  node.queue.push_back({std::move(visit), std::move(passed)});
  return {};
}

bool workflow_schedule::encloses(number from, number join) {
  const auto [known, is_new] = enclosing_.try_emplace({from, join});
  if (is_new)
    known->second = graph_.encloses(from, join);
  return known->second;
}

std::vector<std::string>
workflow_schedule::missing_in(number at, const gathering& inputs) const {
  std::vector<std::string> names;
  for (const auto from : graph_.nodes()[at].before)
    if (!inputs.froms.contains(from) || inputs.failed.contains(from))
      names.push_back(from == workflow_graph::start
                        ? std::string(workflow_start)
                        : graph_.nodes()[from].name);
  return names;
}

// The join with waiting inputs that comes first along the edges.
std::optional<number> workflow_schedule::first_stuck() const {
  std::optional<number> first;
  for (const auto each : graph_.joins())
    if (gathers(each))
      if (!first || graph_.rank(each) < graph_.rank(*first))
        first = each;
  return first;
}

result<bool> workflow_schedule::settle() {
  for (;;) {
    const auto at = first_stuck();
    if (!at)
      return false;
    const auto& node = graph_.nodes()[*at];
    const auto& rule = std::get<join>(node.work);
    auto& all = nodes_[*at].gatherings;
    const auto inputs
      = std::ranges::find(all, std::uint64_t{0}, &gathering::fired_as);
    if (rule.on_missing == missing_inputs::drop) {
      all.erase(inputs);
      continue;
    }
    if (rule.on_missing == missing_inputs::skip) {
      auto fired = fire(*at, *inputs);
      all.erase(inputs);
      if (!fired)
        return fired.error();
      return true;
    }
    return stuck(*at, *inputs);
  }
}

error workflow_schedule::stuck(number at, const gathering& inputs) const {
  const auto& node = graph_.nodes()[at];
  const auto names = missing_in(at, inputs);
  if (inputs.failed.empty())
    return {errc::stuck_join,
            fmt::format("join '{}' waits for {}, which will give no more "
                        "output; set its on_missing to skip or drop, or give "
                        "it a count",
                        node.name,
                        fmt::join(names, ", "))};
  std::string reasons;
  for (const auto& [from, left] : inputs.failed)
    reasons += fmt::format("{}node '{}' failed: {}",
                           reasons.empty() ? "" : "; ",
                           graph_.nodes()[from].name,
                           left.failure.value_or(""));
  std::string others;
  for (const auto& each : names)
    if (!inputs.failed.contains(graph_.find(each)))
      others += (others.empty() ? "; it also waits for " : ", ") + each;
  return {errc::stuck_join,
          fmt::format("join '{}' needs {} of its {} inputs and has {}: {}{}",
                      node.name,
                      wanted_by(at, inputs),
                      node.before.size(),
                      inputs.tokens.size(),
                      reasons,
                      others)};
}

bool workflow_schedule::gathers(number node) const {
  return std::ranges::any_of(nodes_[node].gatherings, [](const auto& inputs) {
    return inputs.fired_as == 0;
  });
}

json workflow_schedule::output() const {
  const auto& ends = graph_.ends();
  if (ends.size() == 1)
    return outputs_[ends.front()] ? *outputs_[ends.front()] : json();
  auto all = json::object();
  for (const auto each : ends)
    if (outputs_[each] && !outputs_[each]->is_null())
      all[graph_.nodes()[each].name] = *outputs_[each];
  return all;
}

} // namespace troupe
