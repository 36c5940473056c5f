// A timeline as an SVG picture, for pages that cannot show a report.
//
// The picture needs no script and no other file. Its colours follow the scheme
// of the reader, light or dark.

#pragma once

#include "troupe/load/timeline.hpp"

#include <string>
#include <string_view>

namespace troupe::load {

/// Draws a row for each lane and a bar for each step. `title` stands above
/// them. Names are shortened to the room that they have.
std::string to_picture(const timeline& shown, std::string_view title);

} // namespace troupe::load
