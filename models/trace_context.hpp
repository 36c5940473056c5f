// A position in a trace of several programs, as W3C Trace Context writes it in
// the headers `traceparent` and `tracestate`.

#pragma once

#include "troupe/core/error.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

/// The parent span of some work, as the texts of two headers.
struct trace_context {
  /// `traceparent`: `00-TRACE-SPAN-FLAGS`, as `read_traceparent` reads it.
  /// Empty: the work has no parent span.
  std::string parent = {};
  /// `tracestate`, fields of vendors: `KEY=VALUE,KEY=VALUE`. May be empty. It
  /// has no meaning without `parent`.
  std::string state = {};

  friend bool operator==(const trace_context&, const trace_context&) = default;
};

/// The parts of a `traceparent`.
struct trace_parent {
  /// Id of the trace; not all zero.
  std::array<std::uint8_t, 16> trace{};
  /// Id of the span; not all zero.
  std::array<std::uint8_t, 8> span{};
  /// True if the spans of the trace may be recorded.
  bool is_sampled = false;

  friend bool operator==(const trace_parent&, const trace_parent&) = default;
};

/// Reads a `traceparent` of version 00 or a later one. Returns nothing if it is
/// not valid.
std::optional<trace_parent> read_traceparent(std::string_view text);

/// Writes a `traceparent` of version 00.
std::string to_traceparent(const trace_parent& from);

/// Returns true if the text is a valid `tracestate` of at most 4,096 bytes.
bool is_tracestate(std::string_view text);

/// Returns the context that a request names, as its work passes it on. An
/// invalid parent makes it empty, an invalid state is dropped, and a parent of
/// a later version becomes one of version 00, as W3C says.
trace_context accept_trace_context(std::string parent, std::string state);

/// Fails with `errc::invalid_argument` if one of the texts is not valid, or if
/// there is a state without a parent. Empty texts are valid.
result<void> check_trace_context(const trace_context& given);

} // namespace troupe
