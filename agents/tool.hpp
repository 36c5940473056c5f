// A tool: what the model is told about it, and the function that runs when the
// model calls it.

#pragma once

#include "troupe/contexts/tool_context.hpp"
#include "troupe/core/json.hpp"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace troupe {

/// Runs on a thread of its own pool, never on the runtime's scheduler, so it
/// may block. Gets the arguments, an object, and gives any JSON; an object goes
/// to the model as it is, anything else as `{"result": …}`. What it throws
/// becomes an error result for the model, and what it recorded is discarded.
using tool_function
  = std::function<json(const json& args, tool_context& context)>;

struct tool_options {
  /// An identifier; how the model names the tool.
  std::string name = {};
  std::string description = {};
  /// JSON Schema of the arguments, an object schema.
  json parameters = {{"type", "object"}, {"properties", json::object()}};
  tool_function run = {};
};

/// An immutable value; copies share the function.
class tool {
public:
  /// Throws `errc::invalid_argument` on a bad name or a missing function.
  explicit tool(tool_options options);

  const std::string& name() const noexcept { return options_->name; }

  const std::string& description() const noexcept {
    return options_->description;
  }

  const json& parameters() const noexcept { return options_->parameters; }

  const tool_function& function() const noexcept { return options_->run; }

private:
  std::shared_ptr<const tool_options> options_;
};

/// Tools by name, as agent files refer to them.
using tool_registry = std::map<std::string, tool, std::less<>>;

/// A registry of the given tools. Throws `errc::invalid_argument` if a name
/// comes twice.
tool_registry make_registry(const std::vector<tool>& tools);

} // namespace troupe
