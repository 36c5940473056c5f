// Nodes for workflows of tests, and the ends of their visits as text.

#pragma once

#include "troupe/agents/turns/node_event.hpp"
#include "troupe/agents/workflow.hpp"

#include "../runtime/pause_fixture.hpp"

#include <string>
#include <utility>

namespace troupe::testing {

inline workflow_node function(std::string name, node_function work) {
  return {.name = std::move(name), .work = std::move(work)};
}

/// A node that gives its name and the text of its input.
inline workflow_node passes(std::string name) {
  return function(name, [name](node_context& context) {
    return json(name + "(" + to_text(context.input()) + ")");
  });
}

/// The ends of visits in a session: `path=output `, with the last event of a
/// workflow as `path=output. `.
inline std::string ends(runtime_fixture& on, const session_key& key) {
  std::string all;
  for (const auto& each : on.events(key))
    if (const auto said = record_in(*each)) {
      const auto shown = to_text(said->data);
      if (said->is == workflow_record::kind::end)
        all += path_of(said->at, said->node, said->ordinal) + "=" + shown + " ";
      else if (said->is == workflow_record::kind::over)
        all += said->at.path + "=" + shown + ". ";
    }
  return all;
}

/// The failed attempts in a session: `node@visit#attempt code `.
inline std::string failed(runtime_fixture& on, const session_key& key) {
  std::string all;
  for (const auto& each : on.events(key))
    if (const auto said = record_in(*each);
        said && said->is == workflow_record::kind::failure)
      all += said->node + "@" + std::to_string(said->ordinal) + "#"
             + std::to_string(said->attempt) + " " + each->field("errorCode")
             + " ";
  return all;
}

} // namespace troupe::testing
