// When the models and tools of an event worked: what a timeline is drawn from.
//
// Only events of runs with `run_options::step_times` say so, in their
// `customMetadata`, which other ADKs carry along.

#pragma once

#include "troupe/contexts/lane_host.hpp"
#include "troupe/core/event.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

enum class step_kind : std::uint8_t { model, tool };

/// One call of a model or a tool, from the moment it began to work.
struct step_time {
  step_kind kind = step_kind::model;
  std::string name;
  /// Of the function call; empty for a model.
  std::string call_id;
  timestamp began{};
  timestamp ended{};

  friend bool operator==(const step_time&, const step_time&) = default;
};

/// Writes them into `customMetadata.troupe.steps`, an array of `{"kind":
/// "model"|"tool", "name", "callId", "began", "ended"}`, times in microseconds
/// since the epoch. Those without a beginning are left out.
void tell_steps(event& said, std::span<const step_time> steps);

/// The reverse; empty if the event tells nothing of the kind.
std::vector<step_time> steps_of(const event& said);

/// Of the tools that answer a turn's calls.
std::vector<step_time> steps_of(std::span<const tool_call> answered);

} // namespace troupe
