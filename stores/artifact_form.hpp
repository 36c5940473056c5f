// An artifact's part as two files: what programs read, and the rest of it.
//
// `data` is the text, or the bytes of inline data as they are, or the JSON of
// any other part. `metadata.json` is what makes it exactly the same part again:
//   {"format": 1, "name": string, "form": "text" | "bytes" | "json",
//    "bytes": size of data, "alphabet"?: "url", "fields"?: part without data,
//    "thought"?: true, "extra"?: object}
// The name is for those who look at the files; no program reads it.

#pragma once

#include "troupe/core/content.hpp"

#include <string>
#include <string_view>

namespace troupe {

struct artifact_files {
  std::string metadata;
  std::string data;
};

/// `content` must be one that `artifact_store::save` takes.
artifact_files to_files(std::string_view name, const part& content);

/// The part again. Fails with `errc::corrupt` if they are not what `to_files`
/// makes.
result<part> part_from_files(artifact_files files);

} // namespace troupe
