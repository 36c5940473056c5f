// Turns exceptions of models, tools and agents into errors.

#pragma once

#include "troupe/core/error.hpp"

#include <string>

namespace troupe::actors {

/// The exception that is being handled, as an error. `who` names the code that
/// threw. A thrown `troupe::error` keeps its code; other exceptions get `code`.
error current_failure(errc code, const std::string& who);

} // namespace troupe::actors
