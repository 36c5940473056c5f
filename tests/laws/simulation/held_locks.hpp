// Tells if the calling thread holds a mutex. A job that holds one must not be
// suspended: the other jobs run on the same thread and would wait for ever.

#pragma once

namespace troupe::testing {

bool holds_a_lock() noexcept;

} // namespace troupe::testing
