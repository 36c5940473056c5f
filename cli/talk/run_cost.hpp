// The cost of the model calls of the runs of one command.

#pragma once

#include "troupe/load/prices.hpp"

#include <memory>
#include <string>
#include <utility>

namespace troupe::cli {

/// Counts the events of runs. Used by one thread at a time.
class run_cost {
public:
  /// Without prices, counts nothing.
  explicit run_cost(std::shared_ptr<const load::price_list> prices)
    : prices_(std::move(prices)) {}

  void take(const event& said) {
    if (prices_)
      prices_->add(said, sum_);
  }

  /// `"cost: 0.0123 USD"`, with the models that have no price; empty without
  /// prices.
  std::string line() const {
    return prices_ ? "cost: " + load::to_text(sum_, prices_->currency())
                   : std::string();
  }

private:
  const std::shared_ptr<const load::price_list> prices_;
  load::cost_sum sum_;
};

} // namespace troupe::cli
