// Server-sent events out of pieces of any size.
//
// By the HTML standard, "event stream interpretation": lines end with CR, LF or
// CRLF; a comment starts with a colon; an event ends with an empty line, and
// one that does not is dropped.

#pragma once

#include "troupe/core/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct sse_event {
  /// Empty: `message`.
  std::string name;
  /// The `data` lines, joined by LF.
  std::string data;

  friend bool operator==(const sse_event&, const sse_event&) = default;
};

/// For one thread at a time.
class sse_reader {
public:
  /// Adds the events that `piece` completes to `events`. Fails with
  /// `errc::too_large` when the lines of one event have more than
  /// `event_bytes_max`; the reader is of no use then.
  ///
  /// Beyond the standard, a field `error` is an event of that name with its
  /// value as data: so do servers of llama.cpp before 2025-09 report failures
  /// (ggml-org/llama.cpp#16109).
  result<void> take(std::string_view piece, std::vector<sse_event>& events);

  /// What stands in the stream as if it were none: the lines from the first
  /// that begins with a bracket on, without those of events. So do vendors tell
  /// that a stream has failed (googleapis/python-genai, _api_client.py: "When
  /// API returns an error message, it comes line by line"). At most
  /// `stray_bytes_max`.
  std::string stray() const;

  static constexpr std::size_t event_bytes_max = std::size_t{16} << 20U;
  static constexpr std::size_t stray_bytes_max = std::size_t{64} << 10U;

private:
  void take_line(std::string_view line, std::vector<sse_event>& events);
  void take_field(std::string_view name, std::string_view value);

  std::string line_; // The start of one whose end has not come.
  sse_event event_;
  bool has_data_ = false;
  bool is_after_cr_ = false;
  bool is_at_start_ = true;
  std::size_t event_bytes_ = 0;
  std::string stray_;
};

} // namespace troupe
