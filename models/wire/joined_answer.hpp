// Joins the answers of a turn that a vendor has paused and continued. Internal.

#pragma once

#include "troupe/models/model.hpp"

namespace troupe {

/// Returns one answer: the parts of both in order, the sums of
/// `usageMetadata`, and the citations and sources of both. All other wire
/// fields are those of `last`.
model_response joined(const model_response& first, model_response last);

} // namespace troupe
