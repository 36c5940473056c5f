// Ends the program when memory is exhausted, with one message and an exit code.
// Acknowledged events are not lost: they are stored before they are answered.

#pragma once

#include "troupe/core/error.hpp"

namespace troupe::cli {

/// Makes a failed allocation end the program with `exit_failed` and one message
/// on stderr. `std::terminate` does the same while memory is short, for example
/// if no thread can be started; otherwise it aborts as usual. Call once, before
/// other threads start.
void end_on_low_memory();

/// Fails with `errc::internal` if a limit leaves too little address space for
/// the threads of a runtime.
result<void> check_address_space();

} // namespace troupe::cli
