// What models, tools and agents throw, as an error.

#pragma once

#include "troupe/core/error.hpp"

#include <string>

namespace troupe::actors {

/// The exception that is being handled. `who` is what threw it, in words; the
/// code of a thrown `troupe::error` stays.
error current_failure(errc code, const std::string& who);

} // namespace troupe::actors
