// Bytes as a part of content: an image, a document, what a tool has made.
//
// A part keeps them in wire form, `{"inlineData": {"mimeType": string, "data":
// base64, "displayName"?: string}}`, so that events carry them like all else.

#pragma once

#include "troupe/core/content.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// Bytes and what they are.
struct blob {
  std::string bytes;
  /// `"image/png"`; empty if unknown.
  std::string mime_type;
  /// The name that a user sees; may be empty.
  std::string display_name;

  friend bool operator==(const blob&, const blob&) = default;
};

/// A part of these bytes.
part inline_data(std::string_view bytes,
                 std::string mime_type,
                 std::string display_name = {});

/// The bytes of a part, or nothing if it is of another kind. Reads camelCase
/// and snake_case, and base64 as `from_base64` does; no `data` is no bytes.
/// Fails with `errc::invalid_argument`.
result<std::optional<blob>> blob_of(const part& said);

} // namespace troupe
