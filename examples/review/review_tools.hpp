// Tools of the reviewers: each reads `temp:text` and writes its findings to the
// session's state.

#pragma once

#include "troupe/agents/tool.hpp"

namespace review {

/// The tools under the names in the agent file.
troupe::tool_registry make_tools();

} // namespace review
