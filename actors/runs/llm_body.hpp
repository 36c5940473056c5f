// The body of an LLM agent: asks the model, runs the tools that it calls, and
// asks again until the model answers or hands over.

#pragma once

#include "troupe/actors/runs/lane.hpp"

#include <optional>

namespace troupe::actors {

/// Runs the LLM agent `which` with its `options`, in `context` on `lane`. If
/// the runtime makes summaries, an agent that sees all events sees summaries in
/// place of those that they cover. An agent whose task asks the user ends; the
/// run of the user's next message starts it again, and it continues the task.
/// Returns the agent that continues, if the model handed over.
task<std::optional<agent>> run_llm(lane_actor& lane,
                                   invocation_context& context,
                                   const agent& which,
                                   const llm_options& options);

} // namespace troupe::actors
