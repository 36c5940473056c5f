// A child process that is spoken to over its stdin, stdout and stderr.

#pragma once

#include "troupe/core/error.hpp"
#include "troupe/core/support/descriptor.hpp"

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace troupe::processes {

struct program {
  std::string command;
  std::vector<std::string> args;
  /// The whole environment, as `NAME=value`.
  std::vector<std::string> environment;
  std::filesystem::path folder; ///< Empty: that of this process.
};

/// A started program. It is the leader of a process group of its own, so that
/// an interrupt from the terminal does not reach it, and signals reach the
/// processes that it starts. It inherits no descriptor but the three.
struct child_process {
  pid_t pid = -1;
  descriptor input;  ///< Our end of its stdin.
  descriptor output; ///< Our end of its stdout.
  descriptor errors; ///< Our end of its stderr.
  descriptor handle; ///< A pidfd: readable when the process has ended.
};

/// Starts a program; no shell is involved. Fails with `errc::tool_failed` if
/// that is not possible; the message names the command and the reason.
result<child_process> start_program(const program& started);

/// The end of a process.
struct process_end {
  bool is_success; ///< Exit status 0.
  /// For messages: "exit status 1", "signal 9".
  std::string words;
};

/// Waits for a child that has ended, so that no zombie stays.
process_end reap(pid_t child);

/// Sends a signal to the process and those that it has started.
void signal_group(pid_t child, int signal) noexcept;

} // namespace troupe::processes
