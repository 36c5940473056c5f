// Our errors as CAF carries them.

#pragma once

#include "troupe/core/error.hpp"

#include <caf/error.hpp>

namespace troupe::actors {

/// Convert a failure to CAF's form and back. A foreign `caf::error` becomes
/// `errc::internal` with its numeric code in the text.
caf::error to_caf(const error& failure);
error from_caf(const caf::error& failure);

} // namespace troupe::actors
