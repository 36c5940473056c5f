// The turn of an LLM agent whose process ended: its newest model answer and the
// calls in it, as the agent's own events tell them.

#pragma once

#include "troupe/core/event.hpp"

#include <string>
#include <vector>

namespace troupe {

/// How far an agent came in the turn of its newest model answer.
struct cut_off_turn {
  /// The event with that answer; null if there is none.
  event_ptr made;
  /// True if the agent had nothing more to do: the answer has no calls, or the
  /// result of a tool was the agent's answer.
  bool is_over = false;
  /// True if the results of tools are stored, or a question about the calls:
  /// the calls in the answer were made.
  bool has_called = false;
  /// Ids of the calls that have a response.
  std::vector<std::string> answered;
  /// Ids of the questions about calls that the user was asked.
  std::vector<std::string> asked;
  /// Ids of the calls that were made, and whose response comes from outside.
  std::vector<std::string> pending;
  /// Name of the agent to which a tool handed over; empty for none.
  std::string transfer_to_agent;
};

/// Reads the events of one call of an LLM agent in one run, oldest first. They
/// hold no events of other agents.
cut_off_turn find_cut_off_turn(const std::vector<event_ptr>& own);

} // namespace troupe
