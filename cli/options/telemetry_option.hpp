// The export of telemetry, which the variables of OpenTelemetry switch on.

#pragma once

#include "troupe/agents/agent.hpp"
#include "troupe/runtime/runtime.hpp"

#include <memory>
#include <string>

namespace troupe::cli {

/// Telemetry of the runs of a command (docs/telemetry.md). Off unless
/// `OTEL_EXPORTER_OTLP_ENDPOINT`, or the variable of one kind of record, names
/// a receiver.
class telemetry_option {
public:
  /// Reads the variables. A wrong one, or a program that was built without
  /// telemetry, prints a warning on stderr and leaves it off: it is no reason
  /// to refuse a run.
  telemetry_option();
  ~telemetry_option();

  telemetry_option(const telemetry_option&) = delete;
  telemetry_option& operator=(const telemetry_option&) = delete;

  /// Tells the agents of an app. Call it before `watch`.
  void describe(const agent& root, const std::string& app);

  /// Puts the plugin in front of the others.
  void watch(runtime_options& options) const;

private:
  struct parts;

  std::unique_ptr<parts> parts_; // Null: off.
};

} // namespace troupe::cli
