// Load tests with varied settings: every combination of the values of one or
// two settings.

#pragma once

#include "troupe/load/load_test.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::load {

/// A setting and its values: `callers=1,8,64,512`.
struct variation {
  std::string name;
  std::vector<std::string> values;
};

/// Reads a variation. Fails with `errc::invalid_argument` for a setting that
/// cannot be varied, for no values, and for values that do not fit.
result<variation> read_variation(std::string_view text);

/// One test of a sweep.
struct sweep_step {
  std::vector<std::string> values; ///< One for each variation.
  settings chosen;
};

/// All combinations; the last variation changes fastest. Fails with
/// `errc::invalid_argument` if a setting occurs twice, for more than two
/// variations, and for a combination that cannot be run.
result<std::vector<sweep_step>>
plan_sweep(const settings& base, const std::vector<variation>& varied);

/// The result of one step, as a row.
struct sweep_row {
  std::vector<std::string> values;
  double rate = 0; ///< Appends per second.
  std::chrono::nanoseconds p50{};
  std::chrono::nanoseconds p99{};
  std::chrono::nanoseconds p99_9{};
  std::uint64_t failed = 0;
  /// True if the verdict holds.
  bool holds = false;
  /// The test was ended early.
  bool interrupted = false;
};

sweep_row row_of(const sweep_step& step, const outcome& made);

/// A sweep, or the steps of it that have run.
struct sweep {
  settings base;
  std::vector<variation> varied;
  std::vector<sweep_row> rows;
  timestamp started{};
};

/// A table with a bar for the rate of each row.
std::string to_text(const sweep& done);

/// `{"kind": "sweep", "vary": [{"name", "values": [text]}], "rows": [{"values":
/// {NAME: text}, "appendsPerSecond", "p50", "p99", "p99_9", "failed",
/// "holds"}], "settings", "machine", "versions", "startedAt"}`, times in
/// nanoseconds; the last four fields as in the report of a load test.
json to_json(const sweep& done);

} // namespace troupe::load
