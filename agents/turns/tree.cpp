#include "troupe/agents/turns/tree.hpp"

#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>

namespace troupe {

namespace {

const llm_options* llm_of(const agent* which) {
  return which == nullptr ? nullptr : std::get_if<llm_options>(&which->kind());
}

tool make_hand_over(const std::vector<agent>& targets) {
  auto names = json::array();
  for (const auto& target : targets)
    names.push_back(target.name());
  auto properties = json::object();
  properties["agent_name"]
    = {{"type", "string"},
       {"enum", std::move(names)},
       {"description", "Name of the agent that continues"}};
  json parameters{{"type", "object"},
                  {"properties", std::move(properties)},
                  {"required", json::array({"agent_name"})}};
  return tool({.name = std::string(transfer_tool_name),
               .description
               = "Hands the conversation over to another agent, which then "
                 "answers in your place.",
               .parameters = std::move(parameters),
               .run = [](const json& args, tool_context& context) -> json {
                 context.actions().transfer_to_agent
                   = args.at("agent_name").get<std::string>();
                 return nullptr;
               }});
}

// The parts and their order are those of ADK, also the order of the names.
std::string make_hint(const std::vector<agent>& targets, const agent* above) {
  std::vector<std::string> blocks;
  std::vector<std::string> names;
  for (const auto& target : targets) {
    blocks.push_back(fmt::format("\nAgent name: {}\nAgent description: {}\n",
                                 target.name(),
                                 target.description()));
    names.push_back(fmt::format("`{}`", target.name()));
  }
  std::ranges::sort(names);
  auto hint = fmt::format(
    "\nThere are other agents, to which you can hand over:\n\n{}\n\n"
    "Answer yourself if your own description fits the question best.\n\n"
    "If the description of another agent fits it better, call the function "
    "`{}` with the name of that agent, and write nothing besides the call."
    "\n\n**Note**: the function `{}` takes only these names: {}.\n",
    fmt::join(blocks, "\n"),
    transfer_tool_name,
    transfer_tool_name,
    fmt::join(names, ", "));
  if (above != nullptr)
    hint += fmt::format("\nIf neither you nor one of the others fits, hand "
                        "over to your parent agent {}.\n",
                        above->name());
  return hint;
}

// The author of the call that the message answers; empty if it answers none.
std::string_view asker(const event_slice& events, const content& message) {
  for (const auto& element : message.parts)
    if (const auto* answer = element.response())
      if (const auto found = find_call(events, answer->id))
        return found->event->author;
  return {};
}

std::unique_ptr<const delegations> make_delegations(const agent& which) {
  if (llm_of(&which) == nullptr)
    return nullptr;
  delegations made;
  for (const auto& below : which.sub_agents()) {
    if (!is_delegated(below))
      continue;
    made.agents.push_back(below);
    made.tools.push_back(delegation_tool(below));
    if (mode_of(below) == agent_mode::task)
      made.tasks.push_back(below.name());
  }
  if (made.agents.empty())
    return nullptr;
  return std::make_unique<const delegations>(std::move(made));
}

} // namespace

agent_tree::agent_tree(agent root) : root_(std::move(root)) {
  add(root_, nullptr);
  for (auto& [name, known] : nodes_) {
    known.transfers = make_targets(known);
    known.delegated = make_delegations(*known.which);
  }
}

void agent_tree::add(const agent& which, const agent* above) {
  nodes_.try_emplace(which.name(), node{&which, above, nullptr, nullptr});
  for (const auto& below : which.sub_agents())
    add(below, &which);
}

std::unique_ptr<const transfer_targets>
agent_tree::make_targets(const node& from) const {
  const auto* options = llm_of(from.which);
  if (options == nullptr || options->mode != agent_mode::chat)
    return nullptr;
  auto targets = from.which->sub_agents();
  std::erase_if(targets, is_delegated);
  const agent* parent = nullptr;
  if (llm_of(from.above) != nullptr) {
    if (!options->disallow_transfer_to_parent) {
      parent = from.above;
      targets.push_back(*parent);
    }
    if (!options->disallow_transfer_to_peers)
      std::ranges::copy_if(from.above->sub_agents(),
                           std::back_inserter(targets),
                           [&from](const agent& peer) {
                             return peer.name() != from.which->name()
                                    && !is_delegated(peer);
                           });
  }
  if (targets.empty())
    return nullptr;
  auto hand_over = make_hand_over(targets);
  auto hint = make_hint(targets, parent);
  return std::make_unique<const transfer_targets>(transfer_targets{
    std::move(targets), std::move(hand_over), std::move(hint)});
}

const agent* agent_tree::find(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.which;
}

const agent* agent_tree::parent(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.above;
}

const transfer_targets* agent_tree::transfers_of(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.transfers.get();
}

const delegations* agent_tree::delegations_of(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.delegated.get();
}

// Returns true if the agent and all above it are LLM agents that may hand over
// to their parents.
bool agent_tree::may_keep_turn(std::string_view name) const {
  for (const auto* next = find(name); next != nullptr;
       next = parent(next->name())) {
    const auto* options = llm_of(next);
    if (options == nullptr || options->disallow_transfer_to_parent
        || (options->mode != agent_mode::chat && next != &root_))
      return false;
  }
  return true;
}

bool agent_tree::can_reach(std::string_view from, std::string_view to) const {
  std::vector<std::string_view> reached{from};
  for (std::size_t index = 0; index < reached.size(); ++index) {
    const auto* way = transfers_of(reached[index]);
    if (way == nullptr)
      continue;
    for (const auto& target : way->targets) {
      if (target.name() == to)
        return true;
      if (std::ranges::find(reached, target.name()) == reached.end())
        reached.push_back(target.name());
    }
  }
  return false;
}

const agent* agent_tree::next_turn(const event_slice& events,
                                   const content& message) const {
  if (llm_of(&root_) == nullptr)
    return &root_;
  if (const auto* asked = find(asker(events, message)))
    return asked;
  for (auto index = events.size(); index > 0; --index) {
    const auto& author = events[index - 1]->author;
    // The claim of a recovery has the root agent as author, whoever goes on.
    if (claims_run(*events[index - 1]))
      continue;
    const auto* known = find(author);
    if (known != nullptr && (known == &root_ || may_keep_turn(author)))
      return known;
  }
  return nullptr;
}

} // namespace troupe
