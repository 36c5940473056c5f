// The answer of a server to a call, as a tool's result.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/error.hpp"
#include "troupe/core/json.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe::mcp {

/// Limit of the bytes of a result, which has to fit in an event with others.
inline constexpr std::size_t answer_bytes_max = std::size_t{256} << 10U;

/// Limit of the blocks with bytes in one answer.
inline constexpr std::size_t media_max = 32;

/// Bytes that came with an answer.
struct answered_media {
  part content;
  std::size_t bytes;
  /// End of a file name for its type: `.png`.
  std::string extension;
  /// True for the types of images that all vendors of models take.
  bool is_for_models;
  /// Its place in `content` of the result.
  std::size_t index;
};

struct tool_answer {
  /// `{"content": [block, …], "structuredContent"?: any}`. Blocks of media have
  /// no bytes.
  json result;
  std::vector<answered_media> media;
};

/// Reads the result of `tools/call`. Fails with `errc::tool_failed` if the
/// server says that the call failed, asks for input, or sends something else
/// than a result, and with `errc::too_large` for a result over the limit.
result<tool_answer> read_answer(const json& result);

} // namespace troupe::mcp
