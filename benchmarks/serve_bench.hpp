// `troupe serve` under load, beside the server of ADK Python.

#pragma once

#include <cstddef>
#include <string>

namespace bench {

struct serve_settings {
  std::size_t rounds = 5;
  /// A Python that has google-adk. Without the package, the rows of ADK are
  /// left out.
  std::string python = "python3";
};

/// Prints the rate of appends over HTTP, the time until the first byte of a
/// run, the memory and the delay of many followers, and the time that the
/// server takes to start.
void serve_over_http(const serve_settings& settings);

} // namespace bench
