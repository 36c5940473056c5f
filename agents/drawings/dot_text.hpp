// A drawing as a graph in the DOT language of Graphviz.
//
// A node with steps stands with them in a frame of its own. The id of each node
// is its name in the graph, always in quotes, so a page finds nodes and edges
// by the names of agents and tools.

#pragma once

#include "troupe/agents/drawings/diagram.hpp"

#include <string>

namespace troupe::drawings {

/// Returns the graph, in UTF-8. Labels are plain text, never HTML, and
/// shortened. `dark` chooses colours for a dark background.
std::string to_dot_text(const node& root, bool dark);

} // namespace troupe::drawings
