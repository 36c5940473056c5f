// Writes requests of OTLP as JSON, and reads the answers.

#pragma once

#include "troupe/core/json.hpp"
#include "troupe/telemetry/otlp/request.hpp"

#include <cstdint>
#include <string_view>

namespace troupe::telemetry {

/// Returns `{"resourceSpans": [{"resource", "scopeSpans": [{"scope",
/// "spans"}]}]}`. Ids are hexadecimal, enumerations numbers, and 64-bit
/// integers text.
json json_of(const origin& from, const span_request& sent);
/// Returns `{"resourceLogs": [{"resource", "scopeLogs": [{"scope",
/// "logRecords"}]}]}`.
json json_of(const origin& from, const log_request& sent);
/// Returns `{"resourceMetrics": [{"resource", "scopeMetrics": [{"scope",
/// "metrics"}]}]}`.
json json_of(const origin& from, const histogram_request& sent);

/// Returns the number of records that the receiver has refused, as its answer
/// tells; 0 for an answer that cannot be read.
std::uint64_t rejected_in_json(std::string_view answer);

} // namespace troupe::telemetry
