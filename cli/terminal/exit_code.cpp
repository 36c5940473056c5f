#include "troupe/cli/terminal/exit_code.hpp"

#include "troupe/cli/terminal/log.hpp"
#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/passwords.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <string>

namespace troupe::cli {

namespace {

std::atomic_flag& is_ending() {
  static std::atomic_flag flag;
  return flag;
}

void write_line(const error& failure) {
  constexpr std::size_t bytes_max = 4'000;
  // The search for passwords is slow in a very long text, so only a part is
  // searched. The rest lies far behind the part that is shown.
  constexpr std::size_t searched_max = 16 * bytes_max;
  const auto text = to_string(failure);
  const auto searched = shorten(text, searched_max);
  if (chosen_log_format() == log_format::json)
    return write_log(
      log_severity::error,
      {},
      shorten(without_passwords(searched), bytes_max),
      json::object({{"code", std::string(to_string(failure.code()))}}));
  auto line = "error: " + visible_text(without_passwords(searched), " ");
  const auto kept = shorten(line, bytes_max);
  if (kept.size() < line.size())
    line
      = fmt::format("{}… ({} bytes more)",
                    kept,
                    line.size() - kept.size() + text.size() - searched.size());
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

} // namespace

int report(const error& failure, int code) {
  while (is_ending().test())
    ::pause();
  write_line(failure);
  return code;
}

void report_last(const error& failure) {
  is_ending().test_and_set();
  write_line(failure);
}

} // namespace troupe::cli
