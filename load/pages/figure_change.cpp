#include "troupe/load/pages/figure_change.hpp"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace troupe::load {

namespace {

double amount_of(const measured_figure& of, const measured_run& run) {
  return of.time == nullptr ? run.rate : (run.*of.time).count();
}

// Mean and variance of the logarithms of a figure.
struct sample {
  double count = 0;
  double mean = 0;
  double variance = 0; // 0 with a single value.
};

// Unset if the figure is 0 in a run. Sums differences to the first value, so
// that equal values have a variance of exactly 0.
std::optional<sample> sample_of(const measured_figure& of,
                                const std::vector<measured_run>& side) {
  sample made;
  made.count = static_cast<double>(side.size());
  std::vector<double> values;
  for (const auto& run : side) {
    const auto amount = amount_of(of, run);
    if (amount == 0)
      return std::nullopt;
    values.push_back(std::log(amount));
    made.mean += (values.back() - values.front()) / made.count;
  }
  made.mean += values.front();
  for (const auto value : values)
    made.variance += (value - made.mean) * (value - made.mean);
  made.variance /= std::max(made.count - 1, 1.0);
  return made;
}

// The relative change that a difference of logarithms means. Kept finite, since
// the interval of two runs a side can exceed the range of numbers.
double change_of(double difference) {
  constexpr double difference_max = 700;
  return std::expm1(std::min(difference, difference_max));
}

// By Welch's t test. Both samples have at least two values.
change_interval
interval_of(const sample& before, const sample& after, double confidence) {
  const auto difference = after.mean - before.mean;
  const auto of_before = before.variance / before.count;
  const auto of_after = after.variance / after.count;
  const auto squared_error = of_before + of_after;
  if (squared_error == 0)
    return {change_of(difference), change_of(difference)};
  // Degrees of freedom by Welch and Satterthwaite, computed with shares of the
  // error: its square underflows when the runs hardly differ.
  const auto share = of_before / squared_error;
  const auto freedom = 1
                       / (share * share / (before.count - 1)
                          + (1 - share) * (1 - share) / (after.count - 1));
  const boost::math::students_t distribution(freedom);
  const auto reach = std::sqrt(squared_error)
                     * quantile(complement(distribution, (1 - confidence) / 2));
  return {change_of(difference - reach), change_of(difference + reach)};
}

bool may_be_none(const change_interval& of) {
  return of.low <= 0 && of.high >= 0;
}

} // namespace

std::string_view to_string(finding found) noexcept {
  constexpr std::array<std::string_view, 4> names
    = {"same", "better", "worse", "unknown"};
  return names[static_cast<std::size_t>(found)];
}

finding judge(double worsening, double margin) {
  if (worsening > margin)
    return finding::worse;
  return worsening < -margin ? finding::better : finding::same;
}

figure_change compare_figure(const measured_figure& of,
                             const std::vector<measured_run>& before,
                             const std::vector<measured_run>& after,
                             const comparison_options& chosen) {
  figure_change made;
  made.name = of.name;
  made.gated = of.gated;
  const auto sample_before = sample_of(of, before);
  const auto sample_after = sample_of(of, after);
  if (sample_before)
    made.before = std::exp(sample_before->mean);
  if (sample_after)
    made.after = std::exp(sample_after->mean);
  if (!sample_before || !sample_after)
    return made;
  made.change = change_of(sample_after->mean - sample_before->mean);
  if (before.size() > 1 && after.size() > 1)
    made.interval
      = interval_of(*sample_before, *sample_after, chosen.confidence);
  made.found = made.interval && may_be_none(*made.interval)
                 ? finding::same
                 : judge(of.time == nullptr ? -*made.change : *made.change,
                         chosen.margin);
  return made;
}

} // namespace troupe::load
