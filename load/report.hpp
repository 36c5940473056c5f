// What a load test has found, for people and for programs.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// The load, the store and the machine, a line each.
std::string describe(const outcome& made);

/// Several lines, the last of which is the verdict.
std::string to_text(const outcome& made);

/// By the names of the options (docs/load_testing.md).
json to_json(const settings& chosen);

/// Everything, with stable names; docs/load_testing.md lists them.
json to_json(const outcome& made);

/// One row per second, with a head.
std::string to_csv(const outcome& made);

/// RFC 3339, in UTC, to the second.
std::string to_rfc3339(timestamp time);

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

/// Fails with `errc::invalid_argument` on what can never hold under these
/// settings.
result<void> check_expectations(const settings& chosen,
                                const std::vector<expectation>& expected);

/// What did not hold, a line each.
std::vector<std::string>
broken_expectations(const outcome& made,
                    const std::vector<expectation>& expected);

} // namespace troupe::load
