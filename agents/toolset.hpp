// Tools that may change while the program runs, such as those of an MCP server.

#pragma once

#include "troupe/agents/tool.hpp"
#include "troupe/contexts/pending.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

/// The tools of a set at one moment; never null in an answer.
using tool_list = std::shared_ptr<const std::vector<tool>>;

/// A set of tools. Thread-safe; several agents may share one.
class toolset {
public:
  virtual ~toolset() = default;

  /// Name for error messages.
  virtual const std::string& name() const noexcept = 0;

  /// Returns the tools. An agent asks before each request to its model, so a
  /// set that knows its tools must not wait for them. Fails with
  /// `errc::tool_failed` if the tools cannot be found out, and with
  /// `errc::cancelled` after `stop` was requested.
  virtual pending<tool_list> tools(std::stop_token stop) = 0;

  /// Returns the tools as far as they are known, without waiting.
  virtual tool_list known_tools() const = 0;
};

/// Shared handle of a set of tools.
using toolset_ptr = std::shared_ptr<toolset>;

} // namespace troupe
