// The visits of a workflow as lines of text.

#pragma once

#include "troupe/load/timeline.hpp"

#include <cstddef>
#include <string>

namespace troupe::load {

/// Returns a row for each visit and each failed attempt of a workflow of `in`,
/// with the workflows in its visits below them. `width` is the number of
/// columns; less than 40 counts as 40.
std::string
visit_lines(const timeline& in, const workflow_view& shown, std::size_t width);

} // namespace troupe::load
