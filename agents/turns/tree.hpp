// Relations between the agents of a tree: parents, possible hand-overs, and the
// agent that continues a conversation.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/core/event_log.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

/// Name of the tool by which a model hands over to another agent.
inline constexpr std::string_view transfer_tool_name = "transfer_to_agent";

/// The extra tool and hint of an LLM agent that may hand over.
struct transfer_targets {
  std::vector<agent> targets;
  tool hand_over;
  /// Text for the model that describes the targets.
  std::string hint;
};

/// The sub-agents of an LLM agent that are its tools, by their mode.
struct delegations {
  std::vector<agent> agents;
  /// One tool for each of `agents`, in the same order.
  std::vector<tool> tools;
  /// Names of those in mode `task`.
  std::vector<std::string> tasks;
};

/// Immutable. The rules are those of ADK.
class agent_tree {
public:
  explicit agent_tree(agent root);
  agent_tree(const agent_tree&) = delete;
  agent_tree& operator=(const agent_tree&) = delete;

  const agent& root() const noexcept { return root_; }

  /// The agent of that name, or null.
  const agent* find(std::string_view name) const;

  /// The parent; null for the root and for agents that are not in the tree.
  const agent* parent(std::string_view name) const;

  /// The agents that an LLM agent may hand over to: its sub-agents and, if its
  /// parent is an LLM agent, the parent and its other sub-agents, unless the
  /// options forbid it. Agents in mode `task` or `single_turn` hand over to no
  /// agent, and are no targets. Null if there are none.
  const transfer_targets* transfers_of(std::string_view name) const;

  /// The sub-agents of an LLM agent that are its tools. Null if there are none.
  const delegations* delegations_of(std::string_view name) const;

  /// Returns true if a conversation can get from one agent to the other by any
  /// number of hand-overs.
  bool can_reach(std::string_view from, std::string_view to) const;

  /// The agent that continues with `message`: the author of the call that it
  /// answers, or else the last author in `events` that may hand over to all
  /// agents above it. Null if there is none; the caller then searches older
  /// events, and finally takes the root.
  const agent* next_turn(const event_slice& events,
                         const content& message) const;

private:
  struct node {
    const agent* which;
    const agent* above;
    std::unique_ptr<const transfer_targets> transfers;
    std::unique_ptr<const delegations> delegated;
  };

  void add(const agent& which, const agent* above);
  std::unique_ptr<const transfer_targets> make_targets(const node& from) const;
  bool may_keep_turn(std::string_view name) const;

  const agent root_;
  std::unordered_map<std::string_view, node> nodes_;
};

} // namespace troupe
