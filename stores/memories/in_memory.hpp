// Memories in this process: for tests, and for programs whose memories need not
// outlive the process.

#pragma once

#include "troupe/stores/memory_service.hpp"

#include <memory>

namespace troupe {

/// Makes an empty service. Its calls fail only on bad input. A search compares
/// the query with all memories of the user.
std::unique_ptr<memory_service> make_transient_memories();

} // namespace troupe
