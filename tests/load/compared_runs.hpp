// Runs of load tests that are made up for comparisons, and short questions to a
// comparison.

#pragma once

#include "troupe/load/pages/comparison.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace troupe::testing {

/// One side of a comparison.
using runs = std::vector<load::measured_run>;

/// A run without failures.
inline load::measured_run steady() {
  using namespace std::chrono_literals;
  load::measured_run made;
  made.rate = 1'000;
  made.p50 = 1ms;
  made.p90 = 2ms;
  made.p99 = 3ms;
  made.p99_9 = 4ms;
  made.max = 5ms;
  made.mean = 1ms;
  made.stored = 10'000;
  made.holds = true;
  made.settings = {{"callers", 8}, {"seed", 1}};
  return made;
}

/// Returns five equal runs, changed by `change`.
inline runs five(const std::function<void(load::measured_run&)>& change = {}) {
  runs made(5, steady());
  if (change)
    std::ranges::for_each(made, change);
  return made;
}

/// Steady runs with other rates.
inline runs with_rates(const std::vector<double>& rates) {
  runs made;
  for (const auto rate : rates)
    made.emplace_back(steady()).rate = rate;
  return made;
}

/// Two sides whose rates differ by 14 %.
inline const runs rates_before = with_rates({1'000, 1'100, 1'050});
inline const runs rates_after = with_rates({900, 950, 850, 920});

/// Returns one figure of a comparison.
inline load::figure_change figure(const load::comparison& made,
                                  const std::string& name) {
  return *std::ranges::find(made.figures, name, &load::figure_change::name);
}

/// Returns the finding about one figure.
inline std::string found(const load::comparison& made,
                         const std::string& name) {
  return std::string(to_string(figure(made, name).found));
}

inline bool has(const std::vector<std::string>& lines,
                const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}

/// The result, which ends the text of a comparison.
inline std::string last_line(const load::comparison& made) {
  const auto text = to_text(made);
  return text.substr(text.rfind('\n', text.size() - 2) + 1);
}

} // namespace troupe::testing
