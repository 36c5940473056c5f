// Reads lines from a terminal, with editing and history (libedit).

#pragma once

#include "troupe/core/error.hpp"

#include <memory>
#include <string>

namespace troupe::cli {

/// A line, or the way in which reading has ended.
struct edited_line {
  enum class ending { line, interrupt, end };

  ending how = ending::line;
  std::string text = {}; ///< UTF-8, without the line's end.
};

/// Used by one thread, except `interrupt`. The keys are those of emacs; a file
/// `~/.editrc` changes them.
class line_editor {
public:
  /// Reads from stdin; stops when `stopped` becomes readable, which outlives
  /// this. Fails with `errc::store_failed` if the terminal cannot be used.
  explicit line_editor(int stopped);
  ~line_editor();
  line_editor(const line_editor&) = delete;
  line_editor& operator=(const line_editor&) = delete;

  /// Shows `prompt` and reads a line. `kept` lines join the history. Fails with
  /// `errc::cancelled` when `stopped` is readable.
  result<edited_line> read(const std::string& prompt, bool kept = true);

  /// Ends the current `read`, or the next one. Thread-safe.
  void interrupt() noexcept;

private:
  struct terminal;

  std::unique_ptr<terminal> terminal_;
};

} // namespace troupe::cli
