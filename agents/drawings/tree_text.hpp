// A drawing as lines for a terminal: one node in each, indented by its depth.
//
//   desk (LLM, model gemini-2.5-pro)
//   ├─ tool: look_up (asks for permission)
//   └─ hands over to: reviews (sequence)
//      ├─ 1. writer (LLM, model gemini-2.5-flash, writes draft)
//      └─ 2. refine (loop, at most 3 rounds)
//         └─ 1. critic (LLM, model gemini-2.5-flash)

#pragma once

#include "troupe/agents/drawings/diagram.hpp"

#include <string>

namespace troupe::drawings {

/// Returns the lines, in UTF-8, each with a line break at its end. Names and
/// facts are safe for a terminal, and shortened.
std::string to_tree_text(const node& root);

} // namespace troupe::drawings
