// The tools of the reviewers: each reads `temp:text`, computes, and leaves what
// it found in the session's state.

#pragma once

#include "troupe/agents/tool.hpp"

namespace review {

/// By the names that the agent file uses.
troupe::tool_registry make_tools();

} // namespace review
