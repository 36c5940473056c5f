// Answers to writes of a session that fail, by whether their `If-Match` holds.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/server/adk/served.hpp"

namespace troupe::serving {

/// Returns the answer to a write whose `If-Match` does not hold, status 412.
response stale();

/// Answers a failed write. A conflict is status 412 if the session has another
/// revision than `If-Match` names, and otherwise 409: the id of an event may
/// belong to another one, for example.
void answer_failed_write(const served_ptr& on,
                         const exchange& asked,
                         const error& why);

} // namespace troupe::serving
