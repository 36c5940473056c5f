#include "troupe/cli/terminal/output.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

namespace troupe::cli {

result<void> output::write(std::string_view text) {
  while (!text.empty()) {
    std::array<pollfd, 2> waiting{pollfd{target_, POLLOUT, 0},
                                  pollfd{interrupted_, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      return error(errc::store_failed,
                   fmt::format("wait for stdout: {}",
                               std::generic_category().message(errno)));
    if (waiting[1].revents != 0)
      return error(errc::cancelled, "interrupted while writing to stdout");
    if (waiting[0].revents == 0)
      continue;
    // A pipe that polls as writable has room for this many bytes, so the write
    // does not block and an interrupt is noticed.
    const auto size = std::min<std::size_t>(text.size(), PIPE_BUF);
    const auto written = ::write(target_, text.data(), size);
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE) {
      closed_ = true;
      return error(errc::cancelled, "stdout was closed by its reader");
    } else if (errno != EINTR && errno != EAGAIN) {
      return error(errc::store_failed,
                   fmt::format("write to stdout: {}",
                               std::generic_category().message(errno)));
    }
  }
  return {};
}

} // namespace troupe::cli
