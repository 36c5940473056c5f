#include "troupe/cli/load_progress.hpp"

#include "troupe/load/report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

namespace troupe::cli {

namespace {

std::string line_of(const load::progress& now) {
  if (now.to_check > 0)
    return fmt::format(
      "checking what is stored: {} of {} sessions", now.checked, now.to_check);
  const auto& second = now.newest;
  std::string left;
  if (now.left)
    left = fmt::format(", {} s left", (now.left->count() + 999) / 1'000);
  // Closed callers offer what they achieve.
  std::string offered;
  if (second.offered > second.stored + second.stored / 100)
    offered = fmt::format(" of {}/s offered", second.offered);
  return fmt::format("{} s{}: {} stored, {}/s{}, p50 {}, p99 {}, max {}, {} in "
                     "flight, {} failed, {} MiB",
                     now.elapsed.count() / 1'000,
                     left,
                     now.stored,
                     second.stored,
                     offered,
                     load::to_text(second.p50),
                     load::to_text(second.p99),
                     load::to_text(second.max),
                     second.in_flight,
                     now.failed,
                     second.memory >> 20U);
}

} // namespace

load_progress::load_progress(std::string before)
  : shown_(::isatty(STDERR_FILENO) == 1),
    before_(std::move(before)) {}

load_progress::~load_progress() {
  if (drawn_)
    std::fputs("\r\033[K", stderr);
}

void load_progress::show(const load::progress& now) {
  if (!shown_)
    return;
  drawn_ = true;
  std::fputs(fmt::format("\r\033[K{}{}", before_, line_of(now)).c_str(),
             stderr);
}

} // namespace troupe::cli
