// Names of processes as holders of runs, which tell if such a process has died.
//
//     ID/PID/START/NAMESPACES/BOOT
//
// ID is unique. The other parts say which process of which machine has it; they
// are missing if they cannot be found out. A process with the same namespaces
// and boot can see that this process has ended. A name is never used again.

#pragma once

#include <string>
#include <string_view>

namespace troupe::actors {

/// The folder of the kernel's files about processes.
inline constexpr const char* process_folder = "/proc";

/// Makes the name of this process from a unique id without '/'. Returns the id
/// alone if a file of `folder` cannot be read, or `folder` shows the processes
/// of another namespace. Thread-safe.
std::string make_holder_name(std::string id,
                             const std::string& folder = process_folder);

/// Returns true if the process with the name `holder` has died for sure, as
/// seen from the process with the name `own`. Returns false if it lives, runs
/// on another machine or in another container, or if that is not known.
/// Thread-safe.
bool has_died(std::string_view holder,
              std::string_view own,
              const std::string& folder = process_folder);

} // namespace troupe::actors
