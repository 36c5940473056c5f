// Whether this thread holds a mutex: one that does is not left in the middle,
// since the others are on the same thread and would wait for ever.

#pragma once

namespace troupe::testing {

bool holds_a_lock() noexcept;

} // namespace troupe::testing
