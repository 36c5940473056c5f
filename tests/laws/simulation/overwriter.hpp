// Agents of a simulation that read keys and then set them plainly. Other agents
// and clients change the keys in between.

#pragma once

#include "pipeline.hpp"

#include <memory>
#include <string>

namespace troupe::testing {

/// Makes such an agent, which emits a few events.
agent make_overwriter(const std::string& name,
                      const std::shared_ptr<pipeline_setup>& with);

} // namespace troupe::testing
