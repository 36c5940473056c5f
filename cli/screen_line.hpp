// One line on stderr that is drawn again and again while a person looks at it.

#pragma once

#include <cstddef>
#include <string_view>

namespace troupe::cli {

/// Does nothing when stderr is no terminal; gone when it ends. For one thread
/// at a time.
class screen_line {
public:
  screen_line();
  screen_line(const screen_line&) = delete;
  screen_line& operator=(const screen_line&) = delete;
  ~screen_line();

  /// Whether anybody can see it.
  bool is_shown() const noexcept { return shown_; }

  /// Draws `text`, in UTF-8, as far as it fits the terminal: a line that wraps
  /// could not be drawn over.
  void show(std::string_view text);

  void clear();

private:
  const bool shown_;
  bool drawn_ = false;
};

/// How many columns the terminal of `descriptor` has, or `otherwise`.
std::size_t columns_of(int descriptor, std::size_t otherwise);

} // namespace troupe::cli
