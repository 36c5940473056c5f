#include "troupe/cli/terminal/count_progress.hpp"

#include <fmt/format.h>

namespace troupe::cli {

void count_progress::show(std::size_t count) {
  constexpr std::chrono::milliseconds pause_min(100);
  if (!line_.is_shown())
    return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < pause_min)
    return;
  drawn_ = now;
  line_.show(fmt::format("{} {} of {} {}", done_, count, total_, things_));
}

} // namespace troupe::cli
