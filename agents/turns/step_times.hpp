// Times at which the models and tools of an event worked, for timelines.
//
// Only events of runs with `run_options::step_times` hold them, in
// `customMetadata`, which other ADK implementations keep.

#pragma once

#include "troupe/contexts/lanes/host.hpp"
#include "troupe/core/event.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace troupe {

enum class step_kind : std::uint8_t { model, tool };

/// One call of a model or tool, from the moment it started to work.
struct step_time {
  step_kind kind = step_kind::model;
  std::string name;
  /// Id of the function call; empty for a model.
  std::string call_id;
  timestamp began{};
  timestamp ended{};

  friend bool operator==(const step_time&, const step_time&) = default;
};

/// Writes the steps into `customMetadata.troupe.steps`, an array of `{"kind":
/// "model"|"tool", "name", "callId", "began", "ended"}` with times in
/// microseconds since the epoch. Steps without a beginning are left out.
void tell_steps(event& said, std::span<const step_time> steps);

/// Reads the steps of an event; empty if it holds none.
std::vector<step_time> steps_of(const event& said);

/// The steps of the tools that answer a turn's calls.
std::vector<step_time> steps_of(std::span<const tool_call> answered);

} // namespace troupe
