// A log record: an event of a span, with a name and attributes.

#pragma once

#include "troupe/telemetry/records/span.hpp"

#include <string>

namespace troupe::telemetry {

/// One record of severity `INFO`.
struct log_record {
  nanoseconds_since_1970 at = 0;
  std::string event_name;
  telemetry::attributes attributes;
  /// The span to which the record belongs.
  trace_id trace{};
  span_id span{};
  /// True if that span is sent, too.
  bool is_sampled = true;
};

} // namespace troupe::telemetry
