// The bytes of one connection that its client has not accepted yet.

#pragma once

#include "troupe/server/http/io.hpp"

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace troupe::serving {

class outgoing {
public:
  void push(std::string piece) {
    if (piece.empty())
      return;
    bytes_ += piece.size();
    pieces_.push_back(std::move(piece));
  }

  void clear() {
    pieces_.clear();
    bytes_ = 0;
    sent_ = 0;
  }

  std::size_t bytes() const noexcept { return bytes_; }

  bool empty() const noexcept { return bytes_ == 0; }

  /// The first bytes, for one write. They stay valid until `pop`, also while
  /// pieces are added. A bounded number, so that progress is seen.
  std::vector<net::const_buffer> front() const {
    constexpr std::size_t pieces_max = 16;
    constexpr std::size_t bytes_max = std::size_t{256} << 10U;
    std::vector<net::const_buffer> found;
    auto skipped = sent_;
    auto left = bytes_max;
    for (const auto& each : pieces_) {
      if (left == 0 || found.size() == pieces_max)
        break;
      const auto size = std::min(each.size() - skipped, left);
      found.emplace_back(each.data() + skipped, size);
      left -= size;
      skipped = 0;
    }
    return found;
  }

  /// Removes bytes that were sent.
  void pop(std::size_t count) {
    bytes_ -= count;
    sent_ += count;
    while (!pieces_.empty() && sent_ >= pieces_.front().size()) {
      sent_ -= pieces_.front().size();
      pieces_.pop_front();
    }
  }

private:
  std::deque<std::string> pieces_;
  std::size_t bytes_ = 0;
  std::size_t sent_ = 0; // Of the first piece.
};

} // namespace troupe::serving
