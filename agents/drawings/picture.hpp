// A drawing as a picture, which Graphviz makes.

#pragma once

#include "troupe/core/error.hpp"

#include <stop_token>
#include <string>

namespace troupe::drawings {

/// Starts the program `dot` of Graphviz, which is searched in `PATH`, gives it
/// a graph in DOT, and returns its picture in SVG. Blocks until the program has
/// ended; `stop` ends it. Fails with `errc::not_found` if there is no such
/// program, with a message that says how to get it; with `errc::tool_failed` if
/// it fails, with the end of its stderr; with `errc::cancelled` after `stop`.
result<std::string> to_svg(const std::string& graph, std::stop_token stop);

} // namespace troupe::drawings
