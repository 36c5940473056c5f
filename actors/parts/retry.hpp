// Comparison of an append with the stored event of the same id.

#pragma once

#include "troupe/core/event.hpp"

namespace troupe::actors {

/// Returns true if `retry` has the same content as `stored`. Time and
/// invocation differ between attempts and are ignored. Operations that were
/// resolved in `stored` are compared by their keys only.
bool is_retry(const event& stored, const event& retry);

} // namespace troupe::actors
