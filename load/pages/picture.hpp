// A timeline as an SVG picture, for pages that cannot show a report.
//
// The picture needs no script and no other file. Its colours follow the scheme
// of the reader, light or dark.

#pragma once

#include "troupe/load/timeline.hpp"

#include <string>
#include <string_view>

namespace troupe::load {

/// Draws `title`, and below it a row for each lane with a bar for each step.
/// Names that are too long for their place are shortened.
std::string to_picture(const timeline& shown, std::string_view title);

} // namespace troupe::load
