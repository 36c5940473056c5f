// Facts of agents that the contexts of a run do not have: the kind of an
// agent, its description and its model.

#pragma once

#include "troupe/agents/agent.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace troupe::telemetry {

/// Facts of one agent.
struct agent_facts {
  std::string description;
  /// Name of the model; empty for an agent without one.
  std::string model;
  bool is_workflow = false;
};

/// Returns the vendor's name in OpenTelemetry, such as `openai`; empty if the
/// name of the model does not tell it.
std::string provider_of(std::string_view model);

/// The facts of all agents of the described trees. Thread-safe.
class agent_register {
public:
  /// Takes the agents of a tree, and those that are tools in it, for the runs
  /// of `app`; an empty name: of every app. The first description of a name
  /// counts.
  void add(const std::string& app, const agent& root);

  /// Returns the facts of an agent; nothing if it was not described.
  std::optional<agent_facts> find(const std::string& app,
                                  const std::string& name) const;

  /// Returns the name of the root agent of an app; empty if it was not
  /// described.
  std::string root_of(const std::string& app) const;

private:
  // Requires `mutex_`.
  void add_tree(const std::string& app, const agent& which);

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, agent_facts> agents_;
  std::map<std::string, std::string> roots_;
};

} // namespace troupe::telemetry
