#include "troupe/cli/terminal/load_progress.hpp"

#include "troupe/load/report.hpp"

#include <fmt/format.h>

namespace troupe::cli {

namespace {

std::string line_of(const load::progress& now) {
  if (now.to_check > 0)
    return fmt::format("checking the stored events: {} of {} sessions",
                       now.checked,
                       now.to_check);
  const auto& second = now.newest;
  std::string left;
  if (now.left)
    left = fmt::format(", {} s left", (now.left->count() + 999) / 1'000);
  // Closed callers offer exactly the rate that they achieve, so it is not
  // shown.
  std::string offered;
  if (second.offered > second.stored + second.stored / 100)
    offered = fmt::format(" of {}/s offered", second.offered);
  return fmt::format("{} s{}: {}/s{}, p50 {}, p99 {}, max {}, {} in flight, {} "
                     "failed, {} MiB, {} stored",
                     now.elapsed.count() / 1'000,
                     left,
                     second.stored,
                     offered,
                     load::to_text(second.p50),
                     load::to_text(second.p99),
                     load::to_text(second.max),
                     second.in_flight,
                     now.failed,
                     second.memory >> 20U,
                     now.stored);
}

} // namespace

void load_progress::show(const load::progress& now) {
  if (line_.is_shown())
    line_.show(before_ + line_of(now));
}

} // namespace troupe::cli
