// From names to folders, such that no two names meet and none leads elsewhere.
//
// A name is percent-encoded: lower-case ASCII letters, digits, `-`, `_` and a
// `.` that does not begin a component stay; every other byte becomes `%` and
// two lower-case digits. Upper-case letters too, so names that differ by case
// alone do not meet where a file system ignores case. What is longer than 128
// bytes then goes on in the next component: each but the last has 128 bytes and
// a `+`, which no encoding has. So there is no limit, no hash, and no two names
// with one path. 128, because an encrypted folder may allow 143 bytes.
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

/// Components, outermost first.
using folder_path = std::vector<std::string>;

/// The folder of all that an owner has. A user's holds its sessions'.
folder_path path_of(const owner_name& owner);

/// The folder of the owner's own artifacts.
folder_path artifacts_path_of(const owner_name& owner);

/// The folder of an artifact; its versions lie in it.
folder_path path_of(const artifact_key& key);

/// Whether a name goes on in the folders within `component`.
bool is_continued(std::string_view component) noexcept;

/// The name that these components, put together without their `+`, are the
/// encoding of; nothing if they are none.
std::optional<std::string> decoded_name(std::string_view encoded);

/// The number of the version in a folder of that name; nothing if it is none.
std::optional<std::int64_t> version_of(std::string_view component) noexcept;

} // namespace troupe
