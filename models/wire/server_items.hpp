// Items of OpenAI's Responses API for thoughts and for the tools that OpenAI's
// servers run, as parts.
//
// The vendor keeps no answers, so it wants these items back unchanged; thoughts
// hold encrypted text. A part shows the work in ADK's form, and keeps the item
// itself as a mark. Internal.

#pragma once

#include "troupe/core/content.hpp"

#include <string_view>
#include <vector>

namespace troupe {

/// Name of the marks of `partMetadata.openai`.
inline constexpr std::string_view openai_marks = "openai";
/// The item, as it goes back.
inline constexpr std::string_view item_mark = "item";
/// Id of the item that an earlier part holds.
inline constexpr std::string_view item_id_mark = "item_id";
/// The `phase` of a message, as it goes back.
inline constexpr std::string_view phase_mark = "phase";

/// Returns true for the type of an item with the work of a tool on the server.
bool is_server_item(std::string_view type);

/// Makes the parts of an item of one of these types: code and its output for
/// `code_interpreter_call`, otherwise `{"toolCall": {"id", "toolType":
/// "WEB_SEARCH", "args"}}`, and `{"toolResponse": {"id", "toolType",
/// "response"}}` if the search has failed or tells its sources. The first part
/// holds the item.
std::vector<part> parts_of_item(json item);

/// Makes the thought of an item `reasoning`. It has no text if the vendor shows
/// none, and only holds the item.
part part_of_reasoning(json item);

/// Returns the item that a part holds; null for none.
json item_of_part(const part& said);

/// Returns true if the part tells an item, or the rest of one.
bool is_of_item(const part& said);

} // namespace troupe
