// The toolsets that the agent files of one tree name.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/agents/mcp_source.hpp"
#include "troupe/agents/toolset.hpp"

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace troupe {

/// Collects the places of servers while the tree is read, and opens all of them
/// at the end. Used by one thread.
class named_toolsets {
public:
  using opener = std::function<toolset_ptr(const mcp_source& source)>;

  /// Returns a set that can be used once `open` has succeeded. Equal sources
  /// have one set.
  toolset_ptr add(const file_place& at, const mcp_source& source);

  /// Opens all sets, asks them for their tools at the same time, and waits.
  /// Fails with `errc::invalid_argument`, naming file and line.
  result<void> open(const opener& make);

private:
  class opened_later;

  struct named {
    file_place at;
    mcp_source source;
    std::shared_ptr<opened_later> set;
  };

  std::vector<named> all_;
};

} // namespace troupe
