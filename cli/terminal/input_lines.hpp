// Reads lines of stdin, one at a time. Reads no more than necessary, and stops
// at a signal.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::cli {

class input_lines {
public:
  /// Reads from `source`; stops when `interrupted` becomes readable. Both
  /// descriptors outlive this.
  input_lines(int source, int interrupted) noexcept
    : source_(source),
      interrupted_(interrupted) {}

  /// The next line that is not blank, without its end; unset after the last
  /// one. Fails with `errc::cancelled` on an interrupt, with `errc::too_large`
  /// for a line of more than `line_bytes_max` bytes, and with
  /// `errc::store_failed` if reading fails.
  result<std::optional<std::string>> next();

  /// Number of the line that `next` returned last, from 1. Blank lines count.
  std::size_t number() const noexcept { return number_; }

  static constexpr std::size_t line_bytes_max = std::size_t{4} << 20U;

private:
  /// Returns false at the end of the input.
  result<bool> read_more();

  int source_;
  int interrupted_;
  bool ended_ = false;
  std::size_t number_ = 0;
  std::string buffer_;
};

} // namespace troupe::cli
