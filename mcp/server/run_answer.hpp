// The answer of a run as the result of a tool: text, media and files of the
// last event.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"
#include "troupe/core/key.hpp"
#include "troupe/mcp/server/offered_agent.hpp"
#include "troupe/stores/artifact_store.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace troupe::mcp {

/// A failed result: `{"content": [{"type": "text", "text": why}], "isError":
/// true}`.
json failed_result(std::string_view why);

/// Collects the events of one run. For one thread at a time.
class run_answer {
public:
  void take(const event_ptr& said);

  /// The result of the call: `{"content": [block, …], "structuredContent"?:
  /// object}`. The blocks are the parts of the last event that has content,
  /// and the artifacts that the run has saved. Blocks for a file that would go
  /// over `media_bytes_max`, or cannot be loaded, are texts that say so. A
  /// failed result if the model's answer was blocked or failed, or does not
  /// fit the output schema. `kept` may be null. May block.
  json result_of(const offered_agent& offered,
                 const session_key& session,
                 artifact_store* kept,
                 std::size_t media_bytes_max) const;

private:
  event_ptr last_; // With content, or with a failure of the model.
  std::map<std::string, std::int64_t> artifacts_;
};

} // namespace troupe::mcp
