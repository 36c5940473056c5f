// Parses server-sent events from pieces of any size.
//
// The rules are those of the HTML standard, "event stream interpretation":
// lines end with CR, LF or CRLF, a comment starts with a colon, an event ends
// with an empty line, and an unfinished event is dropped.

#pragma once

#include "troupe/core/error.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct sse_event {
  /// Empty means `message`.
  std::string name;
  /// The `data` lines, joined by LF.
  std::string data;

  friend bool operator==(const sse_event&, const sse_event&) = default;
};

/// Used by one thread at a time.
class sse_reader {
public:
  /// Adds the events that `piece` completes to `events`. Fails with
  /// `errc::too_large` if the lines of one event exceed `event_bytes_max`; the
  /// reader cannot be used after that.
  ///
  /// Beyond the standard, a field `error` counts as an event of that name with
  /// its value as data. llama.cpp servers before 2025-09 report failures in
  /// this way (ggml-org/llama.cpp#16109).
  result<void> take(std::string_view piece, std::vector<sse_event>& events);

  /// Returns text of the stream that is not part of events: all lines from the
  /// first one that begins with a bracket, without lines of events, at most
  /// `stray_bytes_max` bytes. Some vendors report in this way that a stream has
  /// failed (googleapis/python-genai, _api_client.py: "When API returns an
  /// error message, it comes line by line").
  std::string stray() const;

  /// The newest `id` of the stream; empty if there was none.
  const std::string& last_id() const noexcept { return last_id_; }

  /// The newest `retry` of the stream, in milliseconds: the wait before a
  /// client connects again. Unset if there was none.
  const std::optional<std::chrono::milliseconds>& retry() const noexcept {
    return retry_;
  }

  static constexpr std::size_t event_bytes_max = std::size_t{16} << 20U;
  static constexpr std::size_t stray_bytes_max = std::size_t{64} << 10U;

private:
  void take_line(std::string_view line, std::vector<sse_event>& events);
  void take_field(std::string_view name, std::string_view value);

  std::string line_; // Start of a line that has not ended yet.
  sse_event event_;
  bool has_data_ = false;
  bool is_after_cr_ = false;
  bool is_at_start_ = true;
  std::size_t event_bytes_ = 0;
  std::string stray_;
  std::string last_id_;
  std::optional<std::chrono::milliseconds> retry_;
};

} // namespace troupe
