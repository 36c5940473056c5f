// A program that runs beside the benchmark, so that its memory and CPU time do
// not count for the client.

#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

class child_process {
public:
  /// With `lines`, stdout goes to `read_line` and stderr to that of this
  /// program. With `none`, both are dropped.
  enum class output : bool { lines, none };

  /// Starts `command`, found in PATH. Throws `std::system_error` if the program
  /// cannot be started.
  explicit child_process(const std::vector<std::string>& command,
                         output kept = output::lines);
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// Sends SIGTERM and waits for the end.
  ~child_process();

  /// Waits for the next line, and returns it; an empty text at the end of the
  /// output.
  std::string read_line() const;

  /// User and system time until now.
  double cpu_seconds() const;

  std::size_t resident_bytes() const;

private:
  pid_t process_ = -1;
  int output_ = -1;
};

} // namespace bench
