// Maps names to folders so that no two names share a path and no name leads out
// of the root folder.
//
// A name is percent-encoded: lower-case ASCII letters, digits, `-`, `_` and a
// `.` that does not begin a component stay; every other byte becomes `%` and
// two lower-case digits. Upper-case letters are encoded too, so names that
// differ only by case stay apart where a file system ignores case. An encoding
// longer than 128 bytes continues in the next component: each component but the
// last has 128 bytes and a `+`, which no encoding contains. So there is no
// length limit, no hash, and no collision. The limit is 128 because an
// encrypted folder may allow only 143 bytes.
//
//   press/ann/sessions/s1/report.pdf/0
//   press/ann/own/%52eport.pdf/0        (`user:Report.pdf`)

#pragma once

#include "troupe/stores/artifact_store.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Path components, outermost first.
using folder_path = std::vector<std::string>;

/// The folder of an owner's data. It contains those of the owners below it.
folder_path path_of(const owner_name& owner);

/// The folder of the artifacts that belong to this owner itself.
folder_path artifacts_path_of(const owner_name& owner);

/// The folder of an artifact; it contains the versions.
folder_path path_of(const artifact_key& key);

/// Returns true if the name continues in the folders inside `component`.
bool is_continued(std::string_view component) noexcept;

/// Decodes the joined components (without their `+`). Returns nothing if they
/// are not the encoding of any name.
std::optional<std::string> decoded_name(std::string_view encoded);

/// Parses a version folder's name. Returns nothing if it is not a number in
/// canonical form.
std::optional<std::int64_t> version_of(std::string_view component) noexcept;

} // namespace troupe
