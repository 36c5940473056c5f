// Requests of OTLP: records with the program and the library that made them.
//
// The structure is that of opentelemetry-proto 1.x; both wire forms write the
// same.

#pragma once

#include "troupe/telemetry/records/histogram.hpp"
#include "troupe/telemetry/records/log_record.hpp"
#include "troupe/telemetry/records/span.hpp"

#include <string>
#include <vector>

namespace troupe::telemetry {

/// The maker of the records of a request.
struct origin {
  /// Attributes of the program.
  attributes resource;
  /// Name and version of the library; an empty version is left out.
  std::string scope;
  std::string version;
};

/// Spans of one request.
struct span_request {
  std::vector<span> spans;
};

/// Log records of one request.
struct log_request {
  std::vector<log_record> records;
};

/// Histograms of one request.
struct histogram_request {
  std::vector<histogram> histograms;
  /// The start of the sums, and the present time.
  nanoseconds_since_1970 began = 0;
  nanoseconds_since_1970 now = 0;
};

} // namespace troupe::telemetry
