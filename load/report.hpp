// What a load test has found, for people and for programs.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// Several lines, the last of which is the verdict.
std::string to_text(const outcome& made);

/// Everything, with stable names; docs/load_testing.md lists them.
json to_json(const outcome& made);

/// One row per second, with a head.
std::string to_csv(const outcome& made);

/// `"1.25 ms"`, `"830 us"`, `"2.00 s"`.
std::string to_text(std::chrono::nanoseconds time);

/// What has to hold: `p99<5ms`, `rate>100000`, `errors<1`.
struct expectation {
  std::string text; ///< As it was written.
  std::string what; ///< `p50`, `p90`, `p95`, `p99`, `p99.9`, `p99.99`, `max`,
                    ///< `mean`, `rate`, `errors`.
  bool less = true; ///< Than `limit`; else more.
  double limit = 0; ///< Nanoseconds, appends per second, or a number.
};

/// Reads `WHAT<LIMIT` or `WHAT>LIMIT`, times with `ns`, `us`, `ms` or `s`.
/// Fails with `errc::invalid_argument`.
result<expectation> read_expectation(std::string_view text);

/// What did not hold, a line each.
std::vector<std::string>
broken_expectations(const outcome& made,
                    const std::vector<expectation>& expected);

} // namespace troupe::load
