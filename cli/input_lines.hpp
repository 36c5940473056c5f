// Lines of stdin, one at a time, without reading past what is asked for and
// without outlasting a signal.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace troupe::cli {

class input_lines {
public:
  /// Reads from `source`; gives up when `interrupted` becomes readable. Both
  /// descriptors outlive this.
  input_lines(int source, int interrupted) noexcept
    : source_(source),
      interrupted_(interrupted) {}

  /// The next line without its end, or nothing behind the last one. Fails with
  /// `errc::cancelled` on an interrupt, `errc::too_large` on a line of more
  /// than `line_bytes_max`, and `errc::store_failed`.
  result<std::optional<std::string>> next();

  /// The number of the line that `next` gave last, from 1.
  std::size_t number() const noexcept { return number_; }

  static constexpr std::size_t line_bytes_max = std::size_t{4} << 20U;

private:
  /// Whether there was more.
  result<bool> read_more();

  int source_;
  int interrupted_;
  bool ended_ = false;
  std::size_t number_ = 0;
  std::string buffer_;
};

} // namespace troupe::cli
