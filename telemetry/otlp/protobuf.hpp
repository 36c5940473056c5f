// Writes requests of OTLP as protobuf, and reads the answers.

#pragma once

#include "troupe/telemetry/otlp/request.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::telemetry {

/// Returns the bytes of an `ExportTraceServiceRequest`.
std::string protobuf_of(const origin& from, const span_request& sent);
/// Returns the bytes of an `ExportLogsServiceRequest`.
std::string protobuf_of(const origin& from, const log_request& sent);
/// Returns the bytes of an `ExportMetricsServiceRequest`.
std::string protobuf_of(const origin& from, const histogram_request& sent);

/// Returns the number of records that the receiver has refused, as its answer
/// tells; 0 for an answer that cannot be read.
std::uint64_t rejected_in_protobuf(std::string_view answer);

} // namespace troupe::telemetry
