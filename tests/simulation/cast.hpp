// The agents of a simulation, with models and tools that work, take long, and
// fail by chance.

#pragma once

#include "troupe/agents/agent.hpp"

#include "changes.hpp"
#include "history.hpp"
#include "world.hpp"

#include <memory>

namespace troupe::testing {

struct cast {
  world& in;
  history& told;
  change_habits changes;
  dice chance;
};

/// A pipeline of a few agents of all kinds.
agent make_pipeline(const std::shared_ptr<cast>& with);

} // namespace troupe::testing
