#include "troupe/cli/exit_code.hpp"

#include "troupe/cli/visible_text.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace troupe::cli {

int report(const error& failure, int code) {
  constexpr std::size_t bytes_max = 4'000;
  auto line = "error: " + visible_text(to_string(failure), " ");
  if (line.size() > bytes_max) {
    auto end = bytes_max; // Between characters.
    while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U)
      --end;
    line = fmt::format("{}… ({} bytes more)",
                       std::string_view(line).substr(0, end),
                       line.size() - end);
  }
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

} // namespace troupe::cli
