#include "troupe/mcp/server/line_reader.hpp"

#include "troupe/core/support/blank.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace troupe::mcp {

bool line_reader::take_line() {
  const auto end = buffer_.find('\n', searched_);
  if (end == std::string::npos && (!ended_ || buffer_.empty())) {
    searched_ = buffer_.size();
    return false;
  }
  line_.assign(buffer_, 0, end);
  buffer_.erase(0, end == std::string::npos ? end : end + 1);
  searched_ = 0;
  return true;
}

// Drops the part of a long line that has been read. Its end is still to come.
void line_reader::skip_long_line() {
  buffer_.clear();
  buffer_.shrink_to_fit();
  searched_ = 0;
  skips_ = true;
}

result<line_reader::outcome> line_reader::next() {
  std::array<char, 65'536> piece;
  for (;;) {
    while (take_line()) {
      if (std::exchange(skips_, false) || line_.size() > bytes_max_)
        return outcome::too_long;
      if (!is_blank(line_))
        return outcome::line;
    }
    if (ended_)
      return std::exchange(skips_, false) ? outcome::too_long : outcome::end;
    if (buffer_.size() > bytes_max_)
      skip_long_line();
    std::array<pollfd, 2> waiting{pollfd{source_, POLLIN, 0},
                                  pollfd{woken_, POLLIN, 0}};
    if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      return error(errc::store_failed,
                   fmt::format("wait for a message: {}",
                               std::generic_category().message(errno)));
    if (waiting[1].revents != 0)
      return outcome::woken;
    if (waiting[0].revents == 0)
      continue;
    const auto count = ::read(source_, piece.data(), piece.size());
    if (count >= 0) {
      buffer_.append(piece.data(), static_cast<std::size_t>(count));
      ended_ = count == 0;
    } else if (errno != EINTR && errno != EAGAIN) {
      return error(errc::store_failed,
                   fmt::format("read a message: {}",
                               std::generic_category().message(errno)));
    }
  }
}

} // namespace troupe::mcp
