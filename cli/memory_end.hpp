// How the program ends when the machine has no memory left for it: with one
// message and an exit code.
//
// Nothing that was acknowledged is lost: it is in the store before it is told.

#pragma once

#include "troupe/core/error.hpp"

namespace troupe::cli {

/// From here on a failed allocation ends the program with `exit_failed` and one
/// message on stderr. So does `std::terminate` while memory is short, for
/// example for lack of a thread; otherwise it aborts as before. Call once,
/// before other threads start.
void end_on_low_memory();

/// Fails with `errc::internal` if a limit leaves less address space than the
/// threads of a runtime need to start.
result<void> check_address_space();

} // namespace troupe::cli
