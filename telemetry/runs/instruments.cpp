#include "troupe/telemetry/runs/instruments.hpp"

namespace troupe::telemetry {

namespace {

std::vector<double> multiplied(double first, double factor, std::size_t count) {
  std::vector<double> bounds;
  for (double next = first; bounds.size() < count; next *= factor)
    bounds.push_back(next);
  return bounds;
}

} // namespace

std::vector<instrument> run_instruments() {
  const auto calls = std::vector<double>{
    0, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128, 256, 512};
  const auto short_times = multiplied(0.01, 2, 14);
  const auto long_times = multiplied(0.1, 2, 13);
  return {{"gen_ai.client.operation.duration",
           "Duration of a call of a model",
           "s",
           short_times},
          {"gen_ai.client.token.usage",
           "Tokens of a call of a model",
           "{token}",
           multiplied(1, 4, 14)},
          {"gen_ai.invoke_agent.duration",
           "Duration of one run of an agent",
           "s",
           long_times},
          {"gen_ai.invoke_workflow.duration",
           "Duration of a run, or of a workflow in it",
           "s",
           long_times},
          {"gen_ai.execute_tool.duration",
           "Duration of a call of a tool",
           "s",
           short_times},
          {"gen_ai.invoke_agent.inference_calls",
           "Calls of models by one run of an agent",
           "{call}",
           calls},
          {"gen_ai.invoke_agent.tool_calls",
           "Calls of tools by one run of an agent",
           "{call}",
           calls},
          {"troupe.append.duration",
           "Time until an event of a run was committed",
           "s",
           multiplied(0.0001, 2, 16)},
          {"troupe.commit.changes",
           "Changes in a commit",
           "{change}",
           multiplied(1, 2, 12)}};
}

} // namespace troupe::telemetry
