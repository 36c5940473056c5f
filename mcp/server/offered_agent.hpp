// An agent as a tool, as `tools/list` shows it.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/agents/json_schema.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"
#include "troupe/models/trace_context.hpp"

#include <optional>
#include <string>

namespace troupe::mcp {

/// The message and the session that a call asks for.
struct agent_request {
  std::string message;
  /// Blank: a new session.
  std::string session;
  /// The span that has caused the call; may be empty.
  trace_context trace = {};
};

/// An immutable description. Thread-safe.
class offered_agent {
public:
  explicit offered_agent(agent root);

  const agent& root() const noexcept { return root_; }

  /// The entry of `tools/list`: `{"name", "description", "inputSchema",
  /// "outputSchema"?}`.
  const json& entry() const noexcept { return entry_; }

  /// Reads the arguments of a call. Fails with `errc::invalid_argument` if they
  /// do not fit the schema.
  result<agent_request> read(const json& args) const;

  /// The schema of `structuredContent`; null if the tool has none.
  const json_schema* output_schema() const noexcept {
    return output_ ? &*output_ : nullptr;
  }

private:
  const agent root_;
  std::optional<json_schema> input_; // Unset: a request in words.
  std::optional<json_schema> output_;
  std::optional<json_schema> arguments_; // Always set.
  json entry_;
};

} // namespace troupe::mcp
