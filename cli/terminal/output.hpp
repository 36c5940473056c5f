// Writes results to stdout without buffering. Stops when the reader is gone or
// a signal arrives.

#pragma once

#include "troupe/core/error.hpp"

#include <string_view>

namespace troupe::cli {

class output {
public:
  /// Writes to `target`; stops when `interrupted` becomes readable. Both
  /// descriptors outlive this.
  output(int target, int interrupted) noexcept
    : target_(target),
      interrupted_(interrupted) {}

  /// Writes all of `text`. Fails with `errc::cancelled` on an interrupt or when
  /// the reader is gone (see `is_closed`), else with `errc::store_failed`.
  result<void> write(std::string_view text);

  /// Returns true if the reader is gone. No message is needed then.
  bool is_closed() const noexcept { return closed_; }

private:
  int target_;
  int interrupted_;
  bool closed_ = false;
};

} // namespace troupe::cli
