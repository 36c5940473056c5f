// Whether an append with a known id says what was appended before.

#pragma once

#include "troupe/core/event.hpp"

namespace troupe::actors {

/// Whether `retry` says what `stored` says. Its time and its invocation are
/// those of one attempt, often filled in by the runtime, and do not count;
/// neither do operations that are resolved in the stored event.
bool is_retry(const event& stored, const event& retry);

} // namespace troupe::actors
