// The report of a load test, as text, JSON and CSV.

#pragma once

#include "troupe/load/load_test.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// One line each for load, store and machine.
std::string describe(const outcome& made);

/// Several lines; the last one is the verdict.
std::string to_text(const outcome& made);

/// Settings by the names of the options (docs/load_testing.md).
json to_json(const settings& chosen);

/// The whole report with stable names; docs/load_testing.md lists them.
json to_json(const outcome& made);

/// A header and one row per second.
std::string to_csv(const outcome& made);

/// RFC 3339 in UTC, to the second.
std::string to_rfc3339(timestamp time);

/// `"1.25 ms"`, `"830 us"`, `"2.00 s"`.
std::string to_text(std::chrono::nanoseconds time);

/// A condition on the results: `p99<5ms`, `rate>100000`, `errors<1`.
struct expectation {
  std::string text; ///< The text of the option.
  std::string what; ///< `p50`, `p90`, `p95`, `p99`, `p99.9`, `p99.99`, `max`,
                    ///< `mean`, `rate`, `errors`.
  bool less = true; ///< Below `limit`; else above it.
  double limit = 0; ///< Nanoseconds, appends per second, or a number.
};

/// Reads `NAME<LIMIT` or `NAME>LIMIT`; times have `ns`, `us`, `ms` or `s`.
/// Fails with `errc::invalid_argument`.
result<expectation> read_expectation(std::string_view text);

/// Fails with `errc::invalid_argument` for a condition that can never hold
/// under these settings.
result<void> check_expectations(const settings& chosen,
                                const std::vector<expectation>& expected);

/// The end of a report's last line: the conditions that do not hold; empty if
/// all hold.
std::string broken_expectations(const outcome& made);

/// Judges each condition by the results.
std::vector<judged_expectation>
judge_expectations(const outcome& made,
                   const std::vector<expectation>& expected);

} // namespace troupe::load
