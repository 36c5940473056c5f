// Telemetry of a program that was built without it.

#include "troupe/cli/options/telemetry_option.hpp"
#include "troupe/cli/terminal/log.hpp"

#include <cstdlib>

namespace troupe::cli {

struct telemetry_option::parts {};

telemetry_option::telemetry_option() {
  // Safe as long as no thread changes the environment.
  // NOLINTNEXTLINE(concurrency-mt-unsafe)
  const char* endpoint = std::getenv("OTEL_EXPORTER_OTLP_ENDPOINT");
  if (endpoint != nullptr && *endpoint != '\0')
    write_log(log_severity::warning,
              "warning: ",
              "no telemetry is sent: this program was built without it; "
              "configure with -DTROUPE_TELEMETRY=ON");
}

telemetry_option::~telemetry_option() = default;

void telemetry_option::describe(const agent&, const std::string&) {}

void telemetry_option::watch(runtime_options&) const {}

} // namespace troupe::cli
