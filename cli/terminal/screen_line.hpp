// One line on stderr that is redrawn on a terminal.

#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::cli {

/// Does nothing if stderr is not a terminal. The line is erased at the end. For
/// one thread at a time.
class screen_line {
public:
  screen_line();
  screen_line(const screen_line&) = delete;
  screen_line& operator=(const screen_line&) = delete;
  ~screen_line();

  /// Returns true if stderr is a terminal.
  bool is_shown() const noexcept { return shown_; }

  /// Draws `text`, in UTF-8, cut to the width of the terminal: a wrapped line
  /// could not be redrawn.
  void show(std::string_view text);

  void clear();

private:
  const bool shown_;
  bool drawn_ = false;
};

/// Width in columns of the terminal behind `descriptor`, or `otherwise`.
std::size_t columns_of(int descriptor, std::size_t otherwise);

} // namespace troupe::cli
