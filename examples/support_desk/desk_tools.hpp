// The tools of the support desk, which root_agent.yaml names.

#pragma once

#include "troupe/agents/tool.hpp"

#include <vector>

std::vector<troupe::tool> desk_tools();
