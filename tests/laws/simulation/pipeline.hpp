// The agents of a simulation. Their models and tools work, take long, and fail
// at random.

#pragma once

#include "troupe/agents/agent.hpp"

#include "changes.hpp"
#include "history.hpp"
#include "world.hpp"

#include <memory>

namespace troupe::testing {

struct pipeline_setup {
  world& in;
  history& told;
  change_habits changes;
  dice chance;
  /// True if some agents set keys plainly that they have read.
  bool overwrites = false;
  /// The choices of these agents, apart from the others, whose histories they
  /// leave as they are.
  dice overwriting;
};

/// Makes a pipeline of a few agents of all kinds.
agent make_pipeline(const std::shared_ptr<pipeline_setup>& with);

} // namespace troupe::testing
