// Trees of agents whose effects are counted: on state, and outside of it.
//
// Every change of state is an addition, or sets a value that is always the
// same, and the texts of agents do not depend on state. So the order of lanes
// does not matter, and a run that was killed and recovered must end as one that
// was not.

#pragma once

#include "troupe/agents/agent.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::testing {

/// The part of the world outside of the session that a process's steps touch.
/// Called on the threads of agents, models and tools.
class outside_world {
public:
  outside_world() = default;
  outside_world(const outside_world&) = delete;
  outside_world& operator=(const outside_world&) = delete;
  virtual ~outside_world() = default;

  /// Notes that a step begins. `step` is `tool:NAME`, `node:NAME`, `body:AGENT`
  /// or `model:AGENT`. `key` is the idempotency key of the step; that of a body
  /// is the run. `run` is the id of the run, empty for models.
  virtual void
  note(const std::string& step, const std::string& key, const std::string& run)
    = 0;

  /// Takes the time of a tool. May block.
  virtual void work() = 0;

  /// Chooses the time of a model, a body or a node.
  virtual std::chrono::nanoseconds delay() = 0;
};

using outside_ptr = std::shared_ptr<outside_world>;

/// A tree, made anew for each process.
struct counted_tree {
  std::string name;
  std::function<agent(const outside_ptr&)> make;
  /// Changes of state with the message.
  json delta = json::object();
  /// Steps that are known to have ended when their session has an event of an
  /// author: pairs of `body:AGENT` and the author.
  std::vector<std::pair<std::string, std::string>> ended_by = {};
};

/// All trees: a sequence, a loop, lanes, a map, a workflow, and a workflow and
/// lanes in a loop.
const std::vector<counted_tree>& counted_trees();

} // namespace troupe::testing
