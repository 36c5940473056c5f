// Bytes as a part of content: an image, a document, the output of a tool.
//
// A part keeps them in wire form, `{"inlineData": {"mimeType": string, "data":
// base64, "displayName"?: string}}`, so that events carry them like all other
// parts.

#pragma once

#include "troupe/core/content.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Bytes with their type.
struct blob {
  /// The raw bytes, not base64; may contain NUL.
  std::string bytes;
  /// For example `"image/png"`; empty if unknown.
  std::string mime_type;
  /// The name to show to a user; may be empty.
  std::string display_name;

  friend bool operator==(const blob&, const blob&) = default;
};

/// Makes a part of these bytes.
part inline_data(std::string_view bytes,
                 std::string mime_type,
                 std::string display_name = {});

/// Returns the bytes of a part; nothing for a part of another kind. Reads
/// camelCase and snake_case, and base64 in the standard and the URL alphabet. A
/// missing `data` gives no bytes. Fails with `errc::invalid_argument` on data
/// that is not base64.
result<std::optional<blob>> blob_of(const part& said);

} // namespace troupe
