#include "troupe/agents/workflow.hpp"

#include "troupe/agents/graphs/graph.hpp"

#include <fmt/format.h>

#include <utility>

namespace troupe {

agent workflow(workflow_options options) {
  if (options.lanes_max == std::size_t{0})
    throw error(errc::invalid_argument,
                fmt::format("workflow '{}': lanes_max is 0", options.name));
  if (!options.output_key.empty())
    if (auto key = check_new_key(options.output_key); !key)
      throw error(errc::invalid_argument,
                  fmt::format("output_key of workflow '{}': {}",
                              options.name,
                              key.error().message()));
  std::vector<agent> agents;
  auto graph = std::make_shared<const workflow_graph>(
    options.name, options.nodes, options.edges, agents);
  return make_agent(
    compiled_workflow{.name = std::move(options.name),
                      .description = std::move(options.description),
                      .graph = std::move(graph),
                      .lanes_max = options.lanes_max,
                      .output_key = std::move(options.output_key),
                      .before_agent = std::move(options.before_agent),
                      .after_agent = std::move(options.after_agent)},
    std::move(agents));
}

json output_of(const event& said) {
  const auto& fields = said.extra.data();
  const auto found = fields.is_object() ? fields.find("output") : fields.end();
  return found == fields.end() ? json() : *found;
}

} // namespace troupe
