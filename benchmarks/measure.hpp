// Measurement: alternating rounds of the compared sides, medians, wall time and
// CPU time.
//
// Machines are shared and their speed drifts. Compared sides therefore run
// alternately in one process, and the median of the rounds is printed with
// their range.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bench {

using clock = std::chrono::steady_clock;

/// Result of one round of one side.
struct round_result {
  double seconds = 0;
  double cpu_seconds = 0; ///< User and system time of the whole process.
  std::size_t operations = 0;
  std::vector<std::uint32_t>
    latencies; ///< Nanoseconds, one per operation; sorted by `summarize`.
};

/// Medians over rounds.
struct summary {
  double rate = 0; ///< Operations per second.
  double rate_min = 0;
  double rate_max = 0;
  double p50 = 0; ///< Microseconds.
  double p99 = 0;
  double p999 = 0;
  double cpu = 0; ///< Microseconds per operation.
};

summary summarize(std::vector<round_result> rounds);

/// Wall time and CPU time since its construction.
class stopwatch {
public:
  stopwatch();
  double seconds() const;
  double cpu_seconds() const;

private:
  clock::time_point wall_;
  double cpu_;
};

/// Runs the sides alternately, `rounds` times, and summarizes each.
std::vector<summary>
alternate(std::size_t rounds,
          const std::vector<std::function<round_result()>>& sides);

/// Bytes of resident memory.
std::size_t resident_bytes();

/// Synced writes of 4 KiB per second, into a file beside `beside`; 0 if they
/// fail.
double fdatasync_rate(const std::filesystem::path& beside);

double median(std::vector<double> values);

} // namespace bench
