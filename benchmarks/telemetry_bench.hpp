// The cost of telemetry whose receiver does not answer.

#pragma once

#include <cstddef>
#include <string>

namespace bench {

struct telemetry_settings {
  std::size_t rounds = 9;
  double seconds = 1;
  /// Of the SQLite file, which is removed.
  std::string folder = "build";
};

/// Prints the CPU time of appends and runs without telemetry, and with a
/// receiver that refuses connections.
void pay_for_telemetry(const telemetry_settings& settings);

} // namespace bench
