// Where the agents of a tree are: who is above whom, who may hand over to whom,
// and who goes on with a conversation.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/core/event_log.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe {

/// The name of the tool by which a model hands over.
inline constexpr std::string_view transfer_tool_name = "transfer_to_agent";

/// What an LLM agent that may hand over to others has besides its own.
struct transfer_desk {
  std::vector<agent> targets;
  tool hand_over;
  /// For the model: who the others are.
  std::string hint;
};

/// Immutable. The rules are ADK's.
class agent_tree {
public:
  explicit agent_tree(agent root);
  agent_tree(const agent_tree&) = delete;
  agent_tree& operator=(const agent_tree&) = delete;

  const agent& root() const noexcept { return root_; }

  /// Null if there is none of that name.
  const agent* find(std::string_view name) const;

  /// Null for the root, and for agents that are not in the tree.
  const agent* parent(std::string_view name) const;

  /// Of an LLM agent: its sub-agents, and if its parent is an LLM agent, that
  /// and its other sub-agents, as far as it does not say otherwise. Null if
  /// that is nobody.
  const transfer_desk* desk(std::string_view name) const;

  /// Whether a conversation may come from one agent to the other by handing
  /// over, as often as it takes.
  bool can_reach(std::string_view from, std::string_view to) const;

  /// Who goes on with `message`: the agent whose call in `events` it answers,
  /// or the last one there that has spoken and can hand over to everybody above
  /// it. Null if there is none: older events decide, and then the root.
  const agent* next_turn(const event_slice& events,
                         const content& message) const;

private:
  struct place {
    const agent* which;
    const agent* above;
    std::unique_ptr<const transfer_desk> desk;
  };

  void enter(const agent& which, const agent* above);
  std::unique_ptr<const transfer_desk> make_desk(const place& from) const;
  bool may_keep_turn(std::string_view name) const;

  const agent root_;
  std::unordered_map<std::string_view, place> places_;
};

} // namespace troupe
