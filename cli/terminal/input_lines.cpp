#include "troupe/cli/terminal/input_lines.hpp"

#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace troupe::cli {

result<std::optional<std::string>> input_lines::next() {
  std::size_t searched = 0;
  for (;;) {
    const auto end = buffer_.find('\n', searched);
    if (end != std::string::npos || (ended_ && !buffer_.empty())) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.ends_with('\r'))
        line.pop_back();
      ++number_;
      searched = 0;
      if (is_blank(line))
        continue;
      return std::optional(std::move(line));
    }
    if (ended_)
      return std::optional<std::string>();
    searched = buffer_.size();
    if (searched > line_bytes_max)
      return error(errc::too_large,
                   fmt::format("line {} of stdin has more than {} bytes",
                               number_ + 1,
                               line_bytes_max));
    auto more = read_more();
    if (!more)
      return more.error();
    ended_ = !*more;
  }
}

result<bool> input_lines::read_more() {
  std::array<char, 65'536> piece;
  for (;;) {
    std::array<pollfd, 2> waiting{pollfd{source_, POLLIN, 0},
                                  pollfd{interrupted_, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      return error(errc::store_failed,
                   fmt::format("wait for stdin: {}",
                               std::generic_category().message(errno)));
    if (waiting[1].revents != 0)
      return error(errc::cancelled, "interrupted while reading stdin");
    if (waiting[0].revents == 0)
      continue;
    const auto count = ::read(source_, piece.data(), piece.size());
    if (count >= 0) {
      buffer_.append(piece.data(), static_cast<std::size_t>(count));
      return count > 0;
    }
    if (errno != EINTR && errno != EAGAIN)
      return error(
        errc::store_failed,
        fmt::format("read stdin: {}", std::generic_category().message(errno)));
  }
}

} // namespace troupe::cli
