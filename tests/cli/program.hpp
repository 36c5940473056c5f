// The `troupe` program as a child process, and agent files for it.
//
// TROUPE_PROGRAM is the path of the program, defined by the build.

#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

struct ended {
  /// The exit code, or 128 plus the signal that killed it.
  int code = -1;
  std::string output;
  std::string errors;
  /// Greatest resident memory in bytes.
  std::size_t memory_max = 0;
};

class program {
public:
  /// Connects stdout and stderr to pipes, or both to one terminal.
  enum class screen : bool { pipes, terminal };

  /// An empty `path` stands for TROUPE_PROGRAM.
  explicit program(std::vector<std::string> arguments,
                   screen shown = screen::pipes,
                   const std::string& path = {});
  ~program();
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  /// Writes to stdin, or types on the terminal.
  void write(std::string_view text) const;
  void close_input();
  void close_output();

  /// Reads until `text` has appeared on stdout (or the terminal); returns false
  /// if the output ends before.
  bool read_until(std::string_view text);

  /// As `read_until`, but the text must come behind what was read so before.
  bool read_next(std::string_view text);

  /// The text on stdout that was read so far.
  const std::string& output() const noexcept { return seen_.output; }

  void send(int signal) const;

  /// Closes its input, reads the rest, and waits for its end. Kills it after
  /// half a minute.
  ended wait();

  /// Sends a signal, and waits for the end before it reads the rest. A program
  /// that waits for the reader of its output cannot go on meanwhile.
  ended end_by(int signal);

private:
  /// Waits for the end of the process.
  void reap();

  /// Reads the available output; returns false at the end of all output.
  bool read_some();

  int pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int errors_ = -1;
  ended seen_;
  std::size_t read_ = 0;
};

/// Runs the program to its end with `input` on stdin.
ended run_program(std::vector<std::string> arguments,
                  std::string_view input = {});

/// A folder that is deleted with this object.
class scratch_folder {
public:
  scratch_folder();
  ~scratch_folder();
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view text) const;

  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

} // namespace troupe::testing
