#include "troupe/agents/agent.hpp"

#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/name.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/agents/turns/tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace troupe {

struct agent::description_data {
  body kind;
  std::vector<agent> sub_agents;
  bool transfers = false;
  std::shared_ptr<const std::vector<std::string>> task_names;
  history_extent reads;
  history_extent reads_itself;
};

namespace {

[[noreturn]] void refuse(std::string why) {
  throw error(errc::invalid_argument, std::move(why));
}

const std::string& name_of(const agent::body& kind) noexcept {
  return std::visit(
    [](const auto& options) -> const std::string& { return options.name; },
    kind);
}

void check_generation(const std::string& name, const json& config) {
  if (!config.is_object())
    refuse(
      fmt::format("generation_config of agent '{}' is not an object", name));
  for (const auto* taken : {"tools",
                            "systemInstruction",
                            "system_instruction",
                            "responseSchema",
                            "response_schema"})
    if (config.contains(taken))
      refuse(fmt::format("generation_config of agent '{}' sets '{}'; use the "
                         "agent's own field for it",
                         name,
                         taken));
}

void check_vendor_tools(const std::string& name,
                        const llm_options& options,
                        bool beside_functions) {
  if (options.vendor_tools.empty())
    return;
  std::set<std::string_view> tools;
  for (const auto& each : options.tools)
    tools.insert(each.name());
  for (const auto& each : options.vendor_tools)
    if (!tools.insert(each.name).second)
      refuse(fmt::format("agent '{}' has '{}' twice in tools and vendor_tools; "
                         "remove or rename one",
                         name,
                         each.name));
  if (auto fit = options.model->check_vendor_tools(options.vendor_tools,
                                                   beside_functions);
      !fit)
    refuse(fmt::format("agent '{}': {}", name, fit.error().message()));
}

void check_llm(const std::string& name, const llm_options& options) {
  if (!options.model)
    refuse(fmt::format("agent '{}' has no model", name));
  if (!options.output_key.empty())
    if (auto key = check_new_key(options.output_key); !key)
      refuse(fmt::format(
        "output_key of agent '{}': {}", name, key.error().message()));
  check_generation(name, options.generation_config);
  if (options.contents_max == std::uint64_t{0})
    refuse(fmt::format("contents_max of agent '{}' is 0; for the current turn "
                       "alone set include_contents to none",
                       name));
  if (options.contents_max && options.include_contents != include_contents::all)
    refuse(fmt::format("agent '{}' has a contents_max, but include_contents "
                       "chooses its events already",
                       name));
  const std::set<std::string_view> reserved{transfer_tool_name,
                                            confirmation_name,
                                            request_input_name,
                                            finish_task_name};
  auto tools = reserved;
  for (const auto& known : options.tools)
    if (!tools.insert(known.name()).second)
      refuse(reserved.contains(known.name())
               ? fmt::format("agent '{}' has a tool named '{}'; the name is "
                             "reserved{}; rename the tool",
                             name,
                             known.name(),
                             known.name() == finish_task_name
                               ? " for agents in mode task"
                               : "")
               : fmt::format(
                 "agent '{}' has two tools named '{}'", name, known.name()));
  if (std::ranges::count(options.toolsets, nullptr) > 0)
    refuse(fmt::format("agent '{}' has a toolset that is null", name));
}

// A sub-agent in mode `task` or `single_turn` is a tool of this agent.
void check_delegated(const llm_options& options, const agent& below) {
  const auto& name = options.name;
  if (below.name() == finish_task_name || below.name() == transfer_tool_name
      || below.name() == confirmation_name
      || below.name() == request_input_name)
    refuse(fmt::format("sub-agent '{}' of agent '{}' is a tool by its mode, "
                       "and the name is reserved; rename it",
                       below.name(),
                       name));
  if (std::ranges::find(options.tools, below.name(), &tool::name)
      != options.tools.end())
    refuse(fmt::format("agent '{}': a tool and the sub-agent '{}' have the "
                       "same name, and a sub-agent in mode task or single_turn "
                       "is a tool; rename one",
                       name,
                       below.name()));
  if (options.mode == agent_mode::single_turn
      && mode_of(below) == agent_mode::task)
    refuse(fmt::format("agent '{}' has mode single_turn and runs without the "
                       "user; its sub-agent '{}' cannot be in mode task, which "
                       "may ask the user",
                       name,
                       below.name()));
  // Throws for a bad input_schema.
  static_cast<void>(delegation_tool(below));
}

void check_modes(const agent::body& kind,
                 const std::vector<agent>& sub_agents) {
  const auto* options = std::get_if<llm_options>(&kind);
  for (const auto& below : sub_agents) {
    if (options == nullptr) {
      if (const auto tasks = task_names_in({below}); !tasks.empty())
        refuse(fmt::format("agent '{}' is in mode task, but '{}' above it is "
                           "not an LLM agent; only LLM agents can continue a "
                           "task; use an LLM agent as its parent, or mode "
                           "single_turn",
                           tasks.front(),
                           name_of(kind)));
    } else if (is_delegated(below)) {
      check_delegated(*options, below);
    } else if (options->mode != agent_mode::chat) {
      refuse(
        fmt::format("agent '{}' has mode {} and hands over to no agent, so "
                    "its sub-agent '{}' would never run; give the "
                    "sub-agent mode task or single_turn",
                    options->name,
                    options->mode == agent_mode::task ? "task" : "single_turn",
                    below.name()));
    }
  }
}

history_extent extent_of(const llm_options& options) {
  switch (options.include_contents) {
  case include_contents::none:
    return history_extent::none();
  case include_contents::since_summary:
    return history_extent::since_summary();
  case include_contents::all:
    break;
  }
  return options.contents_max ? history_extent::newest(*options.contents_max)
                              : history_extent::all();
}

// The agent's own extent, without its sub-agents.
history_extent extent_of(const agent::body& kind) {
  if (const auto* options = std::get_if<llm_options>(&kind))
    return extent_of(*options);
  if (const auto* options = std::get_if<custom_options>(&kind))
    return options->reads;
  return history_extent::none();
}

// Checks the options of parallel and map agents.
template <class Options>
void check_lanes(const std::string& name,
                 const Options& options,
                 std::size_t count) {
  if (options.lanes_max == std::size_t{0})
    refuse(fmt::format("'{}': lanes_max is 0", name));
  if (options.lane_timeout && options.lane_timeout->count() <= 0)
    refuse(fmt::format("'{}': lane_timeout is not above 0", name));
  if (options.on_failure == lane_failures::quorum
      && (options.quorum == 0 || options.quorum > count))
    refuse(
      fmt::format("'{}': a quorum of {} cannot be reached by {} lanes",
                  name,
                  options.quorum,
                  count == SIZE_MAX ? "any number of" : std::to_string(count)));
  if (options.on_failure != lane_failures::quorum && options.quorum != 0)
    refuse(
      fmt::format("'{}' has a quorum, but on_failure is not quorum", name));
}

void check_map(const std::string& name,
               const map_options& options,
               std::size_t sub_agents) {
  if (sub_agents != 1)
    refuse(fmt::format("map '{}' needs one agent", name));
  if (auto key = check_key(options.items_key); !key)
    refuse(
      fmt::format("items_key of map '{}': {}", name, key.error().message()));
  if (!options.output_key.empty())
    if (auto key = check_new_key(options.output_key); !key)
      refuse(
        fmt::format("output_key of map '{}': {}", name, key.error().message()));
}

// Checks the vendor tools of an agent and of its direct sub-agents. The tools
// `transfer_to_agent` and `finish_task`, and sub-agents that are tools, are
// functions, which some models refuse beside vendor tools.
void check_vendor_tools(const agent::body& kind,
                        const std::vector<agent>& sub_agents) {
  const auto* above = std::get_if<llm_options>(&kind);
  if (above != nullptr)
    check_vendor_tools(above->name,
                       *above,
                       !above->tools.empty() || !above->toolsets.empty()
                         || !sub_agents.empty()
                         || above->mode == agent_mode::task);
  const auto peers
    = std::ranges::count_if(sub_agents, std::not_fn(is_delegated));
  for (const auto& below : sub_agents)
    if (const auto* options = std::get_if<llm_options>(&below.kind());
        options != nullptr && above != nullptr && !is_delegated(below)
        && (!options->disallow_transfer_to_parent
            || (!options->disallow_transfer_to_peers && peers > 1)))
      check_vendor_tools(options->name, *options, true);
}

// A description that is used twice in a tree fails here: its name occurs twice.
void collect_names(const agent& below, std::set<std::string_view>& names) {
  if (!names.insert(below.name()).second)
    refuse(fmt::format("agent name '{}' comes twice in the tree; names are "
                       "unique",
                       below.name()));
  for (const auto& next : below.sub_agents())
    collect_names(next, names);
}

} // namespace

agent make_agent(agent::body kind, std::vector<agent> sub_agents) {
  const auto name = name_of(kind);
  if (!is_identifier(name))
    refuse(fmt::format("agent name '{}' is not an identifier", name));
  if (name == "user")
    refuse("an agent cannot be named 'user': that is the author of messages");
  if (const auto* options = std::get_if<llm_options>(&kind))
    check_llm(name, *options);
  check_vendor_tools(kind, sub_agents);
  if (const auto* options = std::get_if<loop_options>(&kind);
      options != nullptr && options->max_iterations == 0)
    refuse(fmt::format("loop '{}': max_iterations is 0; leave it out for an "
                       "endless loop",
                       name));
  if (const auto* options = std::get_if<parallel_options>(&kind))
    check_lanes(name, *options, sub_agents.size());
  if (const auto* options = std::get_if<map_options>(&kind)) {
    check_lanes(name, *options, SIZE_MAX);
    check_map(name, *options, sub_agents.size());
  }
  if (const auto* options = std::get_if<custom_options>(&kind);
      options != nullptr && !options->run)
    refuse(fmt::format("custom agent '{}' has no function", name));
  if (const auto* options = std::get_if<compiled_workflow>(&kind);
      options != nullptr && !options->graph)
    refuse(fmt::format("workflow '{}' has no graph; make it with "
                       "troupe::workflow",
                       name));
  check_modes(kind, sub_agents);
  std::set<std::string_view> names{name};
  for (const auto& below : sub_agents)
    collect_names(below, names);
  const bool transfers
    = (std::holds_alternative<llm_options>(kind) && !sub_agents.empty())
      || std::ranges::any_of(sub_agents, &agent::transfers);
  auto tasks = task_names_in(sub_agents);
  auto reads_itself = extent_of(kind);
  // Open tasks are found in these events.
  const auto* options = std::get_if<llm_options>(&kind);
  if (!tasks.empty()
      || (options != nullptr && options->mode == agent_mode::task))
    reads_itself = reads_itself | history_extent::since_turn();
  auto reads = reads_itself;
  for (const auto& below : sub_agents)
    reads = reads | below.reads();
  return agent(
    std::make_shared<const agent::description_data>(agent::description_data{
      std::move(kind),
      std::move(sub_agents),
      transfers,
      tasks.empty()
        ? nullptr
        : std::make_shared<const std::vector<std::string>>(std::move(tasks)),
      reads,
      reads_itself}));
}

const std::string& agent::name() const noexcept {
  return name_of(data_->kind);
}

const std::string& agent::description() const noexcept {
  return std::visit(
    [](const auto& options) -> const std::string& {
      return options.description;
    },
    data_->kind);
}

const std::vector<agent>& agent::sub_agents() const noexcept {
  return data_->sub_agents;
}

const agent::body& agent::kind() const noexcept {
  return data_->kind;
}

bool agent::transfers() const noexcept {
  return data_->transfers;
}

const std::shared_ptr<const std::vector<std::string>>&
agent::task_names() const noexcept {
  return data_->task_names;
}

const history_extent& agent::reads() const noexcept {
  return data_->reads;
}

const history_extent& agent::reads_itself() const noexcept {
  return data_->reads_itself;
}

const std::vector<agent_callback>& agent::before_agent() const noexcept {
  return std::visit(
    [](const auto& options) -> const std::vector<agent_callback>& {
      return options.before_agent;
    },
    data_->kind);
}

const std::vector<agent_callback>& agent::after_agent() const noexcept {
  return std::visit(
    [](const auto& options) -> const std::vector<agent_callback>& {
      return options.after_agent;
    },
    data_->kind);
}

agent agent::with_model(const model_ptr& replacement) const {
  auto copy = *data_;
  if (auto* options = std::get_if<llm_options>(&copy.kind))
    options->model = replacement;
  for (auto& below : copy.sub_agents)
    below = below.with_model(replacement);
  check_vendor_tools(copy.kind, copy.sub_agents);
  return agent(std::make_shared<const description_data>(std::move(copy)));
}

agent llm(llm_options options, std::vector<agent> sub_agents) {
  return make_agent(std::move(options), std::move(sub_agents));
}

agent sequential(sequential_options options, std::vector<agent> sub_agents) {
  return make_agent(std::move(options), std::move(sub_agents));
}

agent parallel(parallel_options options, std::vector<agent> sub_agents) {
  return make_agent(std::move(options), std::move(sub_agents));
}

agent map(map_options options, agent which) {
  return make_agent(std::move(options), {std::move(which)});
}

agent loop(loop_options options, std::vector<agent> sub_agents) {
  return make_agent(std::move(options), std::move(sub_agents));
}

agent custom(std::string name,
             agent_function run,
             std::vector<agent> sub_agents) {
  return custom(custom_options{.name = std::move(name), .run = std::move(run)},
                std::move(sub_agents));
}

agent custom(custom_options options, std::vector<agent> sub_agents) {
  return make_agent(std::move(options), std::move(sub_agents));
}

} // namespace troupe
