// The body of an LLM agent: asks the model, runs the tools that it calls, and
// asks again until the model answers or hands over.

#pragma once

#include "troupe/agents/plugin.hpp"
#include "troupe/agents/turns/tree.hpp"

#include <optional>

namespace troupe::actors {

/// Runs one agent. `options` belong to the agent of `context`; `tree` is null
/// if no agent may hand over. With `reads_summaries`, an agent that sees all
/// events sees summaries in place of those that they cover. Returns the agent
/// that continues, if the model handed over.
task<std::optional<agent>> run_llm(invocation_context& context,
                                   const llm_options& options,
                                   const agent& root_agent,
                                   const agent_tree* tree,
                                   const std::vector<plugin>& plugins,
                                   bool reads_summaries);

} // namespace troupe::actors
