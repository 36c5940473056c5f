// The body of an LLM agent: asks the model, runs the tools that it calls, and
// asks again until it has answered.

#pragma once

#include "troupe/agents/agent.hpp"

namespace troupe::actors {

/// `options` are those of the agent that runs in `context`.
task<> run_llm(invocation_context& context, const llm_options& options);

} // namespace troupe::actors
