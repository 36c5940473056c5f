// Memories as a model sees them: not too long, and without markers that could
// look like the end of their block.

#pragma once

#include "troupe/contexts/readonly_context.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace troupe {

/// Bytes of text that are shown of one memory.
inline constexpr std::size_t shown_memory_bytes_max = std::size_t{8} << 10U;
/// Bytes of text that are shown of all memories that one search has found.
inline constexpr std::size_t shown_memories_bytes_max = std::size_t{64} << 10U;

/// Cuts texts above these limits between two characters; a cut text ends with
/// `[…]`. Memories beyond the second limit are left out. Markers in texts and
/// authors are replaced.
std::vector<memory_entry> shown_memories(std::vector<memory_entry> found);

/// The texts of a message, except thoughts, joined by blanks.
std::string joined_texts(const content& said);

/// A block for the conversation: time, author and text of each memory. Further
/// lines of a text are indented, so that they cannot look like a memory.
std::string memory_block(const std::vector<memory_entry>& found);

} // namespace troupe
