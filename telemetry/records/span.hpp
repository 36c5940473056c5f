// A span: one piece of work of a run, with its begin and its end.

#pragma once

#include "troupe/telemetry/records/attribute.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::telemetry {

/// Id of all spans of a run.
using trace_id = std::array<std::uint8_t, 16>;
/// Id of a span; all zero: none.
using span_id = std::array<std::uint8_t, 8>;

/// Nanoseconds since 1970.
using nanoseconds_since_1970 = std::uint64_t;

/// Returns the seconds between two times; 0 if the second one is not later.
inline double seconds_between(nanoseconds_since_1970 began,
                              nanoseconds_since_1970 ended) {
  return ended > began ? static_cast<double>(ended - began) / 1e9 : 0;
}

/// Something that happened in a span.
struct span_event {
  nanoseconds_since_1970 at = 0;
  std::string name;
  telemetry::attributes attributes;
};

/// One piece of work.
struct span {
  trace_id trace{};
  span_id id{};
  /// The span that has caused it, of this program or of another one; all zero
  /// for the first one of a trace.
  span_id parent{};
  /// `tracestate` of the trace; may be empty.
  std::string trace_state;
  std::string name;
  nanoseconds_since_1970 began = 0;
  nanoseconds_since_1970 ended = 0;
  telemetry::attributes attributes;
  std::vector<span_event> events;
  bool has_failed = false;
  /// Reason of the failure; may be empty.
  std::string failure;
};

} // namespace troupe::telemetry
