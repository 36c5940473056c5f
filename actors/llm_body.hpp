// The body of an LLM agent: asks the model, runs the tools that it calls, and
// asks again until it has answered or handed over.

#pragma once

#include "troupe/agents/agent_tree.hpp"
#include "troupe/agents/plugin.hpp"

#include <optional>

namespace troupe::actors {

/// `options` are those of the agent that runs in `context`, `root` is the one
/// at the top, and `tree` the tree of both if one of it may hand over, or null.
/// Gives the agent that goes on in its place, if the model has handed over.
task<std::optional<agent>> run_llm(invocation_context& context,
                                   const llm_options& options,
                                   const agent& root,
                                   const agent_tree* tree,
                                   const std::vector<plugin>& plugins);

} // namespace troupe::actors
