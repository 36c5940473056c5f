// Lines of a file descriptor, one at a time. A line over the limit is skipped
// without being kept.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace troupe::mcp {

class line_reader {
public:
  enum class outcome : std::uint8_t {
    line,     ///< `line()` is the next line.
    too_long, ///< A line was over the limit.
    end,      ///< The input has ended.
    woken,    ///< The other descriptor is readable.
  };

  /// Reads from `source`, and stops when `woken` becomes readable. Both
  /// descriptors outlive this.
  line_reader(int source, int woken, std::size_t bytes_max) noexcept
    : source_(source),
      woken_(woken),
      bytes_max_(bytes_max) {}

  /// Waits for the next line that is not blank. Fails with
  /// `errc::store_failed` if reading fails.
  result<outcome> next();

  /// The last line, without its end.
  std::string& line() noexcept { return line_; }

private:
  /// Takes a line out of the buffer, if there is a whole one.
  bool take_line();
  void skip_long_line();

  int source_;
  int woken_;
  std::size_t bytes_max_;
  std::string line_;
  std::string buffer_;
  std::size_t searched_ = 0;
  bool ended_ = false;
  bool skips_ = false;
};

} // namespace troupe::mcp
