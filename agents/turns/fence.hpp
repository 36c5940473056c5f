// Markers around texts of a request that others have written, or that only look
// like words of the user. They tell a model where such a text begins and ends.
//
// Invariant: a text between markers holds no marker itself, so it cannot end
// its block early. The markers are those of ADK.

#pragma once

#include "troupe/core/json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

/// Kind of a text between markers.
enum class fence : std::uint8_t {
  /// Words, arguments or results of another agent.
  quote,
  /// The agent's own instruction, where it is part of the conversation.
  instruction,
  /// The description of a tool, by the server of the tool.
  tool_description,
};

/// Returns the marker, newline, `text`, newline, the end marker. Markers of
/// each kind inside of the text are replaced by `<<<ELIDED_MARKER>>>`.
std::string fenced(fence kind, std::string_view text);

/// Returns the text with each marker replaced by `<<<ELIDED_MARKER>>>`.
std::string without_markers(std::string text);

/// Returns a JSON Schema with each description between markers. Markers are
/// replaced in all other texts and names.
json fenced_descriptions(const json& schema);

/// First part of a content that quotes another agent.
std::string quote_preamble();

/// The instruction of an agent as text of a content: an explanation, and the
/// instruction between markers.
std::string labelled_instruction(std::string_view text);

/// The part of a system instruction that explains fenced descriptions of tools.
std::string tool_description_preamble();

} // namespace troupe
