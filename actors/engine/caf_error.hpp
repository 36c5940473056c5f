// Conversion between errors of troupe and errors of CAF.

#pragma once

#include "troupe/core/error.hpp"

#include <caf/error.hpp>

namespace troupe::actors {

/// Converts a failure to CAF's form. `from_caf` converts it back; a foreign
/// `caf::error` becomes `errc::internal` with its numeric code in the text.
caf::error to_caf(const error& failure);
error from_caf(const caf::error& failure);

} // namespace troupe::actors
