// The body of an LLM agent: asks the model, runs the tools that it calls, and
// asks again until it has answered or handed over.

#pragma once

#include "troupe/actors/run_shared.hpp"
#include "troupe/agents/agent.hpp"

#include <optional>

namespace troupe::actors {

/// `options` are those of the agent that runs in `context`. Gives the agent
/// that goes on in its place, if the model has handed over.
task<std::optional<agent>> run_llm(invocation_context& context,
                                   const llm_options& options,
                                   const run_shared& run);

} // namespace troupe::actors
