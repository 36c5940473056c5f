#include "troupe/agents/drawings/diagram.hpp"

#include "troupe/agents/drawings/line.hpp"
#include "troupe/agents/graphs/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <variant>

namespace troupe::drawings {

namespace {

using facts = std::vector<fact>;

constexpr std::size_t id_max = 200;

fact shown(std::string words) {
  return {{}, {}, std::move(words)};
}

// -- facts of agents ----

template <class Options>
void add_lane_facts(facts& to, const Options& options) {
  if (options.lanes_max)
    to.push_back({"lanes_max",
                  *options.lanes_max,
                  fmt::format("at most {} at once", *options.lanes_max)});
  if (options.on_failure == lane_failures::collect)
    to.push_back({"on_failure", "collect", "continues after failures"});
  if (options.on_failure == lane_failures::quorum) {
    to.push_back({"on_failure", "quorum", {}});
    to.push_back({"quorum",
                  options.quorum,
                  fmt::format("needs {} successes", options.quorum)});
  }
  if (options.lane_timeout)
    to.push_back(
      {"lane_timeout",
       static_cast<double>(options.lane_timeout->count()) / 1'000,
       fmt::format("each at most {} ms", options.lane_timeout->count())});
}

void add_model_facts(facts& to, const llm_options& options) {
  if (auto name = options.model->name(); !name.empty()) {
    auto words = "model " + name;
    to.push_back({"model", std::move(name), std::move(words)});
  }
  if (options.mode == agent_mode::task)
    to.push_back({"mode", "task", "mode task"});
  if (options.mode == agent_mode::single_turn)
    to.push_back({"mode", "single_turn", "mode single_turn"});
}

// Functions that make an instruction have no text before a run.
void add_instruction(facts& to,
                     const char* name,
                     const instruction& instruction) {
  if (const auto* text = std::get_if<std::string>(&instruction.source()))
    to.push_back({name, *text, {}});
}

void add_history_facts(facts& to, const llm_options& options) {
  switch (options.include_contents) {
  case include_contents::all:
    to.push_back({"include_contents", "default", {}});
    break;
  case include_contents::none:
    to.push_back({"include_contents", "none", "sees the current turn only"});
    break;
  case include_contents::since_summary:
    to.push_back({"include_contents",
                  "since_summary",
                  "sees the summary and later events"});
    break;
  }
  if (options.contents_max)
    to.push_back({"contents_max",
                  *options.contents_max,
                  fmt::format("sees {} events", *options.contents_max)});
}

void add_output_key(facts& to, const std::string& key) {
  if (!key.empty())
    to.push_back({"output_key", key, "writes " + key});
}

facts facts_of(const llm_options& options) {
  facts made;
  add_model_facts(made, options);
  add_instruction(made, "instruction", options.instruction);
  add_instruction(made, "global_instruction", options.global_instruction);
  if (!options.static_instruction.empty())
    made.push_back({"static_instruction", options.static_instruction, {}});
  made.push_back({"disallow_transfer_to_parent",
                  options.disallow_transfer_to_parent,
                  options.disallow_transfer_to_parent
                    ? "does not hand over to its parent"
                    : ""});
  made.push_back({"disallow_transfer_to_peers",
                  options.disallow_transfer_to_peers,
                  options.disallow_transfer_to_peers
                    ? "does not hand over to its peers"
                    : ""});
  add_history_facts(made, options);
  add_output_key(made, options.output_key);
  if (options.output_schema)
    made.push_back(shown("answers JSON"));
  return made;
}

facts facts_of(const sequential_options&) {
  return {};
}

facts facts_of(const parallel_options& options) {
  facts made;
  add_lane_facts(made, options);
  if (options.isolate_temp)
    made.push_back({"isolate_temp", true, "own copies of temp:"});
  return made;
}

facts facts_of(const map_options& options) {
  facts made;
  made.push_back(
    {"items_key", options.items_key, "each item of " + options.items_key});
  add_lane_facts(made, options);
  add_output_key(made, options.output_key);
  return made;
}

std::string rounds_of(const loop_options& options) {
  return options.max_iterations
           ? fmt::format("at most {} round{}",
                         *options.max_iterations,
                         *options.max_iterations == 1 ? "" : "s")
           : "until a step escalates";
}

facts facts_of(const loop_options& options) {
  if (!options.max_iterations)
    return {shown(rounds_of(options))};
  return {{"max_iterations", *options.max_iterations, rounds_of(options)}};
}

facts facts_of(const custom_options&) {
  return {};
}

// ADK's workflows run again when their run goes on.
facts facts_of(const compiled_workflow& options) {
  facts made{{"rerun_on_resume", true, {}}};
  if (options.lanes_max)
    made.push_back({"lanes_max",
                    *options.lanes_max,
                    fmt::format("at most {} at once", *options.lanes_max)});
  add_output_key(made, options.output_key);
  return made;
}

// -- nodes of workflows ----

facts facts_of(const workflow_graph::node& which) {
  facts made;
  if (const auto* rule = std::get_if<join>(&which.work)) {
    made.push_back(shown(
      rule->count
        ? fmt::format("waits for {} of {}", *rule->count, which.before.size())
        : "waits for all before it"));
    if (rule->on_missing == missing_inputs::skip)
      made.push_back(shown("fires without inputs that cannot come"));
    if (rule->on_missing == missing_inputs::drop)
      made.push_back(shown("drops inputs that cannot be complete"));
    if (rule->on_failed == failed_inputs::skip)
      made.push_back(shown("goes on without failed nodes"));
  }
  if (const auto* all = std::get_if<workflow_graph::mapped>(&which.work))
    made.push_back(shown(
      all->lanes_max
        ? fmt::format("once for each item, at most {} at once", *all->lanes_max)
        : "once for each item"));
  if (which.retry.attempts_max > 1)
    made.push_back(
      shown(fmt::format("at most {} attempts", which.retry.attempts_max)));
  if (which.timeout)
    made.push_back(
      shown(fmt::format("each at most {} ms", which.timeout->count())));
  return made;
}

std::string label_of(const std::vector<route>& routes) {
  std::string label;
  for (const auto& each : routes) {
    const auto* text = std::get_if<std::string>(&each);
    label += (label.empty() ? "" : ", ")
             + (text != nullptr ? *text : to_text(to_json(each)));
  }
  return label;
}

// -- facts of tools ----

facts facts_of(const tool_options& options) {
  facts made;
  if (!options.run && !options.as_agent)
    made.push_back(shown("prepares requests"));
  if (options.require_confirmation.can_hold())
    made.push_back(shown("asks for permission"));
  if (options.long_running)
    made.push_back(shown("long-running"));
  if (options.skip_summarization)
    made.push_back(shown("its result is the answer"));
  if (options.on_failure == tool_failure::end_run)
    made.push_back(shown("a failure ends the run"));
  if (options.timeout)
    made.push_back(
      shown(fmt::format("at most {} ms", options.timeout->count())));
  if (options.calls_max)
    made.push_back(
      shown(fmt::format("at most {} calls at once", *options.calls_max)));
  return made;
}

// -- flows ----

void put_in_order(node& outer) {
  outer.order = flow::in_order;
  for (std::size_t index = 0; index < outer.steps.size(); ++index)
    outer.edges.push_back(
      {index == 0 ? std::nullopt : std::optional(index - 1), index});
}

void put_at_once(node& outer) {
  outer.order = flow::at_once;
  for (std::size_t index = 0; index < outer.steps.size(); ++index)
    outer.edges.push_back({std::nullopt, index});
}

relation relation_to(const agent& below) {
  const auto* options = std::get_if<llm_options>(&below.kind());
  if (options == nullptr || options->mode == agent_mode::chat)
    return relation::transfer;
  return options->mode == agent_mode::task ? relation::task : relation::answer;
}

// -- the tree ----

class drawer {
public:
  node draw(const agent& which) {
    const auto known = agents_.try_emplace(&which.kind());
    const bool is_new = known.second;
    if (is_new)
      known.first->second = fresh_id(which.name());
    node made;
    made.id = known.first->second;
    made.name = which.name();
    made.description = which.description();
    made.is_repeated = !is_new;
    std::visit(
      [&made, &which, is_new, this](const auto& options) {
        made.kind = kind_of(options);
        made.facts = facts_of(options);
        if (is_new)
          add_parts(made, which, options);
      },
      which.kind());
    return made;
  }

private:
  static node_kind kind_of(const llm_options&) { return node_kind::llm; }

  static node_kind kind_of(const sequential_options&) {
    return node_kind::sequential;
  }

  static node_kind kind_of(const parallel_options&) {
    return node_kind::parallel;
  }

  static node_kind kind_of(const map_options&) { return node_kind::map; }

  static node_kind kind_of(const loop_options&) { return node_kind::loop; }

  static node_kind kind_of(const custom_options&) { return node_kind::custom; }

  static node_kind kind_of(const compiled_workflow&) {
    return node_kind::workflow;
  }

  void add_parts(node& made, const agent& which, const llm_options& options) {
    for (const auto& each : options.tools)
      made.uses.push_back(draw(each));
    for (const auto& each : options.toolsets)
      made.uses.push_back({relation::tool, draw(*each)});
    for (const auto& each : options.vendor_tools)
      made.uses.push_back(
        {relation::tool, leaf(node_kind::vendor_tool, each.name, {}, {})});
    for (const auto& each : which.sub_agents()) {
      auto& below = made.uses.emplace_back(use{relation_to(each), draw(each)});
      // ADK names the mode of agents that take over.
      if (below.how == relation::transfer && below.what.kind == node_kind::llm)
        below.what.facts.push_back({"mode", "chat", {}});
    }
  }

  void add_parts(node& made, const agent& which, const sequential_options&) {
    add_steps(made, which);
    put_in_order(made);
  }

  void add_parts(node& made, const agent& which, const parallel_options&) {
    add_steps(made, which);
    put_at_once(made);
  }

  void add_parts(node& made, const agent& which, const map_options& options) {
    add_steps(made, which);
    made.order = flow::per_item;
    made.edges.push_back(
      {std::nullopt, 0, "each item of " + options.items_key});
  }

  void add_parts(node& made, const agent& which, const loop_options& options) {
    add_steps(made, which);
    put_in_order(made);
    if (!made.steps.empty())
      made.edges.push_back(
        {made.steps.size() - 1, 0, "again, " + rounds_of(options)});
  }

  void add_parts(node& made, const agent& which, const custom_options&) {
    for (const auto& each : which.sub_agents())
      made.uses.push_back({relation::may_run, draw(each)});
  }

  // The first step is START.
  void
  add_parts(node& made, const agent& which, const compiled_workflow& options) {
    const auto& graph = *options.graph;
    made.order = flow::routed;
    made.steps.push_back(single(node_kind::start, workflow_start, {}));
    for (const auto& each : graph.nodes())
      made.steps.push_back(draw(each, which));
    for (const auto& each : graph.edges())
      made.edges.push_back(
        {each.from == workflow_graph::start ? 0 : each.from + 1,
         each.to + 1,
         label_of(each.routes),
         each.otherwise});
  }

  node draw(const workflow_graph::node& each, const agent& workflow) {
    auto about = facts_of(each);
    if (std::holds_alternative<join>(each.work))
      return single(node_kind::join, each.name, std::move(about));
    const auto* all = std::get_if<workflow_graph::mapped>(&each.work);
    const auto* called = all != nullptr ? std::get_if<tool>(&all->work)
                                        : std::get_if<tool>(&each.work);
    const auto* place = agent_of(each);
    if (called == nullptr && place == nullptr)
      return single(node_kind::function, each.name, std::move(about));
    auto made = called != nullptr ? draw(*called).what
                                  : draw(workflow.sub_agents()[*place]);
    if (made.name != each.name)
      made.facts.push_back(shown("as " + each.name));
    for (auto& one : about)
      made.facts.push_back(std::move(one));
    return made;
  }

  // A node that stands in one place only.
  node single(node_kind kind, const std::string& name, facts about) {
    node made;
    made.id = fresh_id(name);
    made.name = name;
    made.kind = kind;
    made.facts = std::move(about);
    return made;
  }

  void add_steps(node& made, const agent& which) {
    for (const auto& each : which.sub_agents())
      made.steps.push_back(draw(each));
  }

  use draw(const tool& which) {
    const auto& options = which.options();
    auto about = facts_of(options);
    if (!options.as_agent)
      return {relation::tool,
              leaf(node_kind::tool,
                   which.name(),
                   which.description(),
                   std::move(about))};
    use made{relation::call, draw(*options.as_agent)};
    // A repeated node shows the facts of this place, too.
    for (auto& each : about)
      made.what.facts.push_back(std::move(each));
    return made;
  }

  node draw(const toolset& which) {
    auto names = json::array();
    std::string words;
    for (const auto& each : *which.known_tools()) {
      names.push_back(each.name());
      words += (words.empty() ? "" : ", ") + each.name();
    }
    if (words.empty())
      words = "known when it runs";
    return leaf(node_kind::toolset,
                which.name(),
                {},
                {{"tools", std::move(names), std::move(words)}});
  }

  node leaf(node_kind kind,
            const std::string& name,
            const std::string& description,
            facts about) {
    std::string key = fmt::format("{}\n{}", static_cast<int>(kind), name);
    for (const auto& each : about)
      key += '\n' + each.words;
    const auto [known, is_new] = leaves_.try_emplace(std::move(key));
    if (is_new)
      known->second = fresh_id(name);
    node made;
    made.id = known->second;
    made.name = name;
    made.description = description;
    made.kind = kind;
    made.facts = std::move(about);
    return made;
  }

  std::string fresh_id(const std::string& name) {
    auto first = line_of(name, id_max);
    std::ranges::replace(first, '\\', '/');
    auto& count = counts_[first];
    auto id = first;
    while (!ids_.insert(id).second)
      id = fmt::format("{} ({})", first, ++count + 1);
    return id;
  }

  // By the address of the shared description.
  std::map<const agent::body*, std::string> agents_;
  std::map<std::string, std::string> leaves_;
  std::set<std::string> ids_;
  std::map<std::string, std::size_t> counts_;
};

} // namespace

std::string_view to_string(node_kind kind) noexcept {
  constexpr std::array<std::string_view, 13> words = {"LLM",
                                                      "sequence",
                                                      "parallel",
                                                      "map",
                                                      "loop",
                                                      "custom",
                                                      "workflow",
                                                      "start",
                                                      "function",
                                                      "join",
                                                      "tool",
                                                      "toolset",
                                                      "vendor's tool"};
  return words.at(static_cast<std::size_t>(kind));
}

node draw(const agent& root) {
  return drawer().draw(root);
}

} // namespace troupe::drawings
