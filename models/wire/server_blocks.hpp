// Blocks of Claude for the tools that Anthropic's servers run, as parts.
//
// The vendor wants its blocks back unchanged, and they hold encrypted text that
// content has no field for. A part shows the work in ADK's form, and keeps the
// block itself as a mark. Internal.

#pragma once

#include "troupe/core/content.hpp"

#include <optional>
#include <string_view>

namespace troupe {

/// Names of the marks of `partMetadata.anthropic`.
inline constexpr std::string_view anthropic_marks = "anthropic";
/// The block, as it goes back.
inline constexpr std::string_view block_mark = "block";
/// Citations of a text block, as they go back.
inline constexpr std::string_view citations_mark = "citations";
/// Id of the container in which the vendor runs code.
inline constexpr std::string_view container_mark = "container";

/// Returns true for the type of a block that calls a tool on the server.
bool is_server_use(std::string_view type);

/// Returns true for the type of a block with the result of such a tool.
bool is_server_result(std::string_view type);

/// Makes the part of a block of one of these types: code and its output for
/// `code_execution`, otherwise `{"toolCall": {"id", "toolType", "args"}}` or
/// `{"toolResponse": {"id", "toolType", "response"}}`. The tool type is the
/// tool's name in capitals. A response tells title and address of pages,
/// without the encrypted fields, which the vendor alone can read.
part part_of_block(json block);

/// Returns the block of a part that Claude has made; nothing for another one.
std::optional<json> block_of_part(const part& said);

/// Removes calls of the server's tools without a result, and results without a
/// call, which the vendor refuses. A call at the end, in a turn that goes on,
/// gets its result later: it stays if `is_open`, or if only results of other
/// tools follow it. Removes messages that are then empty. `messages` is a list
/// in the vendor's form, of which all contents are lists of blocks.
void remove_unpaired(json& messages, bool is_open);

} // namespace troupe
