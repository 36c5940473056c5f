#include "troupe/cli/exit_code.hpp"

#include "troupe/cli/visible_text.hpp"
#include "troupe/core/passwords.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace troupe::cli {

int report(const error& failure, int code) {
  constexpr std::size_t bytes_max = 4'000;
  auto line
    = "error: " + visible_text(without_passwords(to_string(failure)), " ");
  const auto kept = shorten(line, bytes_max);
  if (kept.size() < line.size())
    line = fmt::format("{}… ({} bytes more)", kept, line.size() - kept.size());
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

} // namespace troupe::cli
