// Converts an artifact's part to two files and back.
//
// `data` holds the text, the decoded bytes of inline data, or the JSON of any
// other part. `metadata.json` holds the rest, so that the same part can be
// restored exactly:
//     {"format": 1, "name": string, "form": "text" | "bytes" | "json",
//      "bytes": size of data, "alphabet"?: "url", "fields"?: part without data,
//      "thought"?: true, "extra"?: object}
// The name is for people who look at the files; no program reads it.

#pragma once

#include "troupe/core/content.hpp"

#include <string>
#include <string_view>

namespace troupe {

struct artifact_files {
  std::string metadata;
  std::string data;
};

/// Converts a part that `artifact_store::save` accepts.
artifact_files to_files(std::string_view name, const part& content);

/// Restores the part. Fails with `errc::corrupt` if `to_files` cannot have made
/// these files.
result<part> part_from_files(artifact_files files);

} // namespace troupe
