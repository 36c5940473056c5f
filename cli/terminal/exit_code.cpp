#include "troupe/cli/terminal/exit_code.hpp"

#include "troupe/cli/terminal/visible_text.hpp"
#include "troupe/core/support/passwords.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace troupe::cli {

int report(const error& failure, int code) {
  constexpr std::size_t bytes_max = 4'000;
  // The search for passwords is slow in a very long text, so only a part is
  // searched. The rest lies far behind the part that is shown.
  constexpr std::size_t searched_max = 16 * bytes_max;
  const auto text = to_string(failure);
  const auto searched = shorten(text, searched_max);
  auto line = "error: " + visible_text(without_passwords(searched), " ");
  const auto kept = shorten(line, bytes_max);
  if (kept.size() < line.size())
    line
      = fmt::format("{}… ({} bytes more)",
                    kept,
                    line.size() - kept.size() + text.size() - searched.size());
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

} // namespace troupe::cli
