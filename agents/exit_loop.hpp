// The tool by which a model ends a loop.

#pragma once

#include "troupe/agents/tool.hpp"

namespace troupe {

/// Makes a tool named `exit_loop`, without parameters. The agent that calls
/// it escalates, which ends the loop that it runs in. Follows ADK's tool of
/// that name.
tool exit_loop();

} // namespace troupe
