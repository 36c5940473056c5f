// The stored form of a memory: JSON text with its author and its content.
// Session, id and time have columns of their own.

#pragma once

#include "troupe/stores/memory_entry.hpp"

#include <string>
#include <string_view>

namespace troupe {

/// Returns `{"author": string, "content": {…}}`.
std::string memory_body(const memory_entry& entry);

/// Sets author and content of `entry`. Fails with `errc::corrupt`.
result<void> read_memory_body(memory_entry& entry, std::string_view body);

} // namespace troupe
