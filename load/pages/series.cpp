#include "troupe/load/pages/series.hpp"

#include "troupe/load/report.hpp"

#include <boost/math/distributions/students_t.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace troupe::load {

namespace {

double appends_per_second(const outcome& made) {
  const std::chrono::duration<double> seconds = made.elapsed;
  return seconds.count() > 0
           ? static_cast<double>(made.stored) / seconds.count()
           : 0;
}

std::chrono::nanoseconds percentile(const outcome& made, double which) {
  return std::min(made.response.value_at(which), made.response.max());
}

std::string row_of(std::size_t number, const outcome& made) {
  std::uint64_t failed = 0;
  for (const auto& [code, count] : made.failed)
    failed += count;
  return fmt::format("{:<8}{:>12.0f}{:>10}{:>10}{:>10}{:>10}{:>9}  {}\n",
                     number,
                     appends_per_second(made),
                     to_text(percentile(made, 50)),
                     to_text(percentile(made, 99)),
                     to_text(percentile(made, 99.9)),
                     to_text(made.response.max()),
                     failed,
                     made.interrupted ? "ended early"
                     : made.holds()   ? "holds"
                     : made.found     ? "FAILS"
                                      : "not checked");
}

std::string estimate_line(std::string_view what,
                          const std::vector<outcome>& runs,
                          const std::function<double(const outcome&)>& figure,
                          const std::function<std::string(double)>& shown) {
  std::vector<double> values;
  for (const auto& each : runs)
    if (!each.interrupted || runs.size() == 1)
      values.push_back(figure(each));
  const auto found = estimate_mean(values);
  auto text = fmt::format("{:<10}{}", what, shown(found.mean));
  if (found.low)
    text += fmt::format(
      " ({} to {})", shown(std::max(*found.low, 0.0)), shown(*found.high));
  return text + '\n';
}

// Sums the verdicts of all runs.
verdict total(const std::vector<outcome>& runs) {
  verdict sum;
  for (const auto& each : runs) {
    const auto& found = *each.found;
    for (const auto member : {&verdict::acknowledged,
                              &verdict::lost,
                              &verdict::doubled,
                              &verdict::ghosts,
                              &verdict::reordered,
                              &verdict::torn,
                              &verdict::wrong_totals})
      sum.*member += found.*member;
    std::ranges::copy(found.findings, std::back_inserter(sum.findings));
  }
  return sum;
}

} // namespace

estimate estimate_mean(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  estimate found;
  found.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  if (values.size() < 2)
    return found;
  double squares = 0;
  for (const auto each : values)
    squares += (each - found.mean) * (each - found.mean);
  const boost::math::students_t student(count - 1);
  const auto margin = boost::math::quantile(student, 0.975)
                      * std::sqrt(squares / (count - 1) / count);
  found.low = found.mean - margin;
  found.high = found.mean + margin;
  return found;
}

std::string to_text(const std::vector<outcome>& runs) {
  auto text = describe(runs.front()) + '\n';
  text += fmt::format("{:<8}{:>12}{:>10}{:>10}{:>10}{:>10}{:>9}  {}\n",
                      "run",
                      "appends/s",
                      "p50",
                      "p99",
                      "p99.9",
                      "max",
                      "failed",
                      "verdict");
  for (std::size_t index = 0; index < runs.size(); ++index)
    text += row_of(index + 1, runs[index]);
  text += "\nmean of the runs, with its interval of 95 %\n";
  text += estimate_line("appends/s", runs, appends_per_second, [](double rate) {
    return fmt::format("{:.0f}", rate);
  });
  const auto time = [](double nanoseconds) {
    return to_text(
      std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds)));
  };
  for (const auto& [name, which] : {std::pair("p50", 50.0),
                                    std::pair("p99", 99.0),
                                    std::pair("p99.9", 99.9)})
    text += estimate_line(
      name,
      runs,
      [which = which](const outcome& made) {
        return static_cast<double>(percentile(made, which).count());
      },
      time);
  text += '\n';
  std::string broken;
  for (std::size_t index = 0; index < runs.size(); ++index)
    if (const auto of_run = broken_expectations(runs[index]); !of_run.empty())
      broken += fmt::format("; run {}{}", index + 1, of_run.substr(1));
  for (const auto& each : runs)
    if (!each.found)
      return text
             + fmt::format("verdict: not checked, the store could not be "
                           "read: {}{}\n",
                           each.unchecked,
                           broken);
  const auto sum = total(runs);
  for (const auto& finding : sum.findings)
    text += fmt::format("- {}\n", finding);
  return text + to_string(sum) + broken + '\n';
}

} // namespace troupe::load
