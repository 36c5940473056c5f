// Options of the export of telemetry, and the variables of OpenTelemetry that
// set them.

#pragma once

#include "troupe/core/environment.hpp"
#include "troupe/core/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::telemetry {

/// Form of the requests to a receiver.
enum class wire_form : std::uint8_t {
  protobuf, ///< `application/x-protobuf`, which every receiver reads.
  json,     ///< `application/json`, which some receivers refuse.
};

/// One receiver of OTLP over HTTP.
struct receiver {
  /// Whole URL, such as `http://localhost:4318/v1/traces`. Empty: this kind of
  /// record is neither made nor sent.
  std::string url = {};
  /// Further headers of each request: name and value.
  std::vector<std::pair<std::string, std::string>> headers = {};
  /// Form of the requests.
  wire_form form = wire_form::protobuf;
  /// Time limit of one request.
  std::chrono::milliseconds timeout = std::chrono::seconds(10);
  /// File with the certificates that are trusted, in PEM. Empty: those of the
  /// system.
  std::string certificates = {};

  friend bool operator==(const receiver&, const receiver&) = default;
};

/// Options of an exporter.
struct options {
  /// Receiver of spans.
  receiver traces = {};
  /// Receiver of histograms.
  receiver metrics = {};
  /// Receiver of log records.
  receiver logs = {};
  /// Attributes of the program, such as `service.name`: key and value.
  std::vector<std::pair<std::string, std::string>> resource
    = {{"service.name", "troupe"}};
  /// Share of the runs whose spans are sent, from 0 to 1. All spans of a run
  /// are sent, or none.
  double sampled = 1;
  /// True: a run with a trace context is sent if its `traceparent` has the flag
  /// "sampled", and only then. Else `sampled` applies to all runs.
  bool follows_parent = true;
  /// True if spans have the contents of messages, and arguments and results of
  /// tools.
  bool spans_have_contents = false;
  /// True if log records have the contents of messages.
  bool logs_have_contents = false;
  /// Limit of spans that wait for the receiver, and of log records; above 0.
  /// Above the limit, new ones are dropped and counted.
  std::size_t queue_max = 2'048;
  /// Limit of spans or log records in one request; above 0.
  std::size_t batch_max = 512;
  /// Time that a record may wait for others of its request.
  std::chrono::milliseconds batch_delay = std::chrono::seconds(5);
  /// Time between two exports of histograms; above 0.
  std::chrono::milliseconds metrics_period = std::chrono::seconds(60);
  /// Time limit for the last requests when a runtime shuts down.
  std::chrono::milliseconds close_timeout = std::chrono::seconds(5);
  /// Source of time, timers, and ids of spans. Unset: the system's.
  std::shared_ptr<troupe::environment> environment = {};
  /// Receives warnings for an operator, one sentence each, at most one in a
  /// minute. Called on the exporter's thread; must not block or throw. Unset:
  /// lines on stderr.
  std::function<void(const std::string& warning)> on_warning = {};
};

/// Returns true if there is a receiver of anything.
bool is_on(const options& chosen) noexcept;

/// Returns the value of an environment variable, or nothing if it is not set.
/// An empty value counts as not set.
using variable_source
  = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads variables of the process. No thread may change them meanwhile.
variable_source process_variables();

/// Reads the variables `OTEL_*` (docs/telemetry.md lists them). Without an
/// endpoint, and with `OTEL_SDK_DISABLED=true`, nothing is on. Fails with
/// `errc::invalid_argument`, naming the variable: for a URL that is neither
/// http nor https, an unknown protocol or sampler, and a malformed number or
/// list.
result<options> options_from(const variable_source& read);

} // namespace troupe::telemetry
