#include "troupe/models/http/sse_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

namespace troupe {

namespace {

// Returns the position of the line's end, or the size of `text`. `memchr`
// processes many bytes at a time; CR is searched only up to the LF.
std::size_t line_size(std::string_view text) {
  const void* end = std::memchr(text.data(), '\n', text.size());
  const auto size
    = end != nullptr
        ? static_cast<std::size_t>(static_cast<const char*>(end) - text.data())
        : text.size();
  const void* earlier
    = size > 0 ? std::memchr(text.data(), '\r', size) : nullptr;
  return earlier != nullptr ? static_cast<std::size_t>(
           static_cast<const char*>(earlier) - text.data())
                            : size;
}

// A comment is a field without a name.
bool is_field(std::string_view line) {
  constexpr std::array<std::string_view, 6> names
    = {"", "event", "data", "error", "id", "retry"};
  return std::ranges::find(names, line.substr(0, line.find(':')))
         != names.end();
}

void add_stray(std::string_view line, std::string& stray) {
  if (line.empty()
      || (stray.empty() && line.front() != '{' && line.front() != '['))
    return;
  if (stray.size() + line.size() < sse_reader::stray_bytes_max)
    stray.append(line).append("\n");
}

} // namespace

result<void> sse_reader::take(std::string_view piece,
                              std::vector<sse_event>& events) {
  while (!piece.empty()) {
    if (std::exchange(is_after_cr_, false) && piece.front() == '\n') {
      piece.remove_prefix(1);
      continue;
    }
    const auto size = line_size(piece);
    if (event_bytes_ + line_.size() + size > event_bytes_max)
      return error(errc::too_large,
                   fmt::format("an event of the stream has more than {} bytes",
                               event_bytes_max));
    if (size == piece.size()) {
      line_ += piece;
      break;
    }
    is_after_cr_ = piece[size] == '\r';
    if (line_.empty()) {
      take_line(piece.substr(0, size), events);
    } else {
      line_ += piece.substr(0, size);
      take_line(line_, events);
      line_.clear();
    }
    piece.remove_prefix(size + 1);
  }
  return {};
}

void sse_reader::take_line(std::string_view line,
                           std::vector<sse_event>& events) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  event_bytes_ += line.size();
  if (std::exchange(is_at_start_, false) && line.starts_with(byte_order_mark))
    line.remove_prefix(byte_order_mark.size());
  if (line.empty()) {
    if (has_data_)
      events.push_back(std::move(event_));
    event_ = sse_event();
    has_data_ = false;
    event_bytes_ = 0;
    return;
  }
  const auto colon = line.find(':');
  auto value = colon == std::string_view::npos ? std::string_view()
                                               : line.substr(colon + 1);
  if (value.starts_with(' '))
    value.remove_prefix(1);
  if (is_field(line))
    take_field(line.substr(0, colon), value);
  else
    add_stray(line, stray_);
}

std::string sse_reader::stray() const {
  auto whole = stray_;
  if (!is_field(line_))
    add_stray(line_, whole); // The line may have no end.
  return whole;
}

void sse_reader::take_field(std::string_view name, std::string_view value) {
  if (name == "event") {
    event_.name = value;
  } else if (name == "data" || name == "error") {
    if (name == "error")
      event_.name = name;
    if (std::exchange(has_data_, true))
      event_.data += '\n';
    event_.data += value;
  } else if (name == "id" && value.find('\0') == std::string_view::npos) {
    last_id_ = value;
  } else if (name == "retry") {
    std::int64_t count = 0;
    const auto* const end = value.data() + value.size();
    const auto read = std::from_chars(value.data(), end, count);
    if (read.ec == std::errc() && read.ptr == end && count >= 0)
      retry_ = std::chrono::milliseconds(count);
  }
}

} // namespace troupe
