// `--compaction-…`: the summaries of long conversations, for the commands that
// run agents.

#pragma once

#include "troupe/agents/compaction.hpp"

#include <cstdint>
#include <optional>

namespace CLI {
class App;
} // namespace CLI

namespace troupe::cli {

struct compaction_option {
  std::optional<std::uint64_t> interval;
  std::uint64_t overlap = 0;
  std::optional<std::uint64_t> tokens;
  std::uint64_t kept = 0;

  /// Adds the options to `command`. This must outlive the parsing.
  void add_to(CLI::App& command);

  /// Unset if no summaries are wanted.
  std::optional<compaction_options> for_runtime() const;
};

} // namespace troupe::cli
