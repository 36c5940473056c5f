// A server that is a child process: one message per line over stdin and stdout.
//
// A process is always waited for, and all processes of its group end with it.
// Text on stderr is read, so that the server does not wait; its end is kept for
// error messages.

#pragma once

#include "troupe/core/processes/child_process.hpp"
#include "troupe/core/processes/io_thread.hpp"
#include "troupe/mcp/transports/transport.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace troupe::mcp {

using processes::child_process;
using processes::io_thread;
using processes::program;

struct stdio_limits {
  std::size_t message_bytes_max;
  /// The time to end after the input was closed, and again after SIGTERM.
  std::chrono::milliseconds grace;
};

/// Starts the program. Call it on `thread`.
/// Fails as `start_program`.
result<std::shared_ptr<transport>>
start_stdio(std::shared_ptr<io_thread> thread,
            const program& started,
            stdio_limits limits,
            transport_events events);

} // namespace troupe::mcp
