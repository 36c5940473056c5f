// Reads the field `static_instruction` of an agent file: a text, or content as
// google-genai takes it.

#pragma once

#include "troupe/agents/files/fields.hpp"
#include "troupe/core/content.hpp"

#include <string>
#include <vector>

namespace troupe {

/// Texts of a static instruction, and its files.
struct static_parts {
  /// The texts, joined by empty lines. A file is replaced by a reference.
  std::string text;
  /// For each file, a content with its reference and the file.
  std::vector<content> contents;
};

/// Reads a text, a part, a list of texts and parts, or `{role: …, parts: […]}`.
/// A part is `{text: …}`, `{inlineData: …}` or `{fileData: …}`; snake_case is
/// read, too. Empty if the field is left out. Fails with
/// `errc::invalid_argument`, naming file and line.
result<static_parts> read_static_instruction(const field_reader& fields);

} // namespace troupe
