// Prices of models, from a file of the user, and the cost of events by them.
//
// Invariant: a model without a price is named, and never counts as free.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/json.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::load {

/// Prices of one model, for a million tokens each.
struct model_prices {
  /// Tokens of the prompt.
  double input = 0;
  /// Tokens of the prompt that the vendor had in its cache; unset: `input`.
  std::optional<double> cached_input = {};
  /// Tokens of the answer.
  double output = 0;
  /// Tokens of thoughts; unset: `output`.
  std::optional<double> thoughts = {};
};

/// Tokens of one model call. None is counted twice.
struct billed_tokens {
  /// Tokens of the prompt that are not `cached_input`, and those of the results
  /// of tools that the vendor runs.
  std::uint64_t input = 0;
  std::uint64_t cached_input = 0; ///< Tokens from the vendor's cache.
  std::uint64_t output = 0;       ///< Tokens of the answer without `thoughts`.
  std::uint64_t thoughts = 0;     ///< Tokens of thoughts.

  /// Sum of all tokens.
  std::uint64_t total() const noexcept {
    return input + cached_input + output + thoughts;
  }
};

/// Reads the tokens of an event from its `usageMetadata`; nothing if it has
/// none.
std::optional<billed_tokens> tokens_of_call(const event& said);

/// A sum of costs in one currency.
struct cost_sum {
  /// Cost of all calls whose model has a price.
  double amount = 0;
  /// Tokens of the other calls, by the name of the model (`modelVersion`);
  /// empty for events that name none.
  std::map<std::string, std::uint64_t> unpriced = {};
  /// Number of model calls with a price.
  std::uint64_t priced_calls = 0;

  /// Adds another sum in the same currency.
  void add(const cost_sum& other);
};

/// The prices of a file. Immutable and thread-safe.
class price_list {
public:
  /// Reads a file in YAML, or in JSON if its name ends in `.json`:
  /// `{"currency"?: string, "models": {NAME: {"input": number, "cached_input"?:
  /// number, "output": number, "thoughts"?: number}}}`. A name is that of an
  /// event's `modelVersion`, or the beginning of such names and `*`. Fails with
  /// `errc::not_found` if the file does not exist. Other failures are
  /// `errc::invalid_argument`, with a message that starts with `FILE:LINE: `.
  static result<price_list> read(const std::filesystem::path& file);

  /// Currency of all prices; `"USD"` if the file names none.
  const std::string& currency() const noexcept { return currency_; }

  /// Prices of a model: those of its name, else those of the longest beginning
  /// that fits. Null if it has none.
  const model_prices* find(std::string_view model) const;

  /// Adds the cost of an event. An event without `usageMetadata` and a partial
  /// one cost nothing.
  void add(const event& said, cost_sum& sum) const;

private:
  std::string currency_ = "USD";
  std::map<std::string, model_prices, std::less<>> exact_;
  // Beginnings of names without `*`, the longest first.
  std::vector<std::pair<std::string, model_prices>> beginnings_;
};

/// `"0.012300 USD"`, with the models that have no price: `"0.012300 USD, and
/// 1200 tokens of models without a price: a, b"`. If no call has a price:
/// `"unknown: no price for a, b (1200 tokens)"`.
std::string to_text(const cost_sum& sum, std::string_view currency);

/// An amount with six decimals, or two from 1 on: `"0.012300 USD"`.
std::string amount_text(double amount, std::string_view currency);

/// `{"currency": string, "amount": number or null, "unpriced": {MODEL:
/// tokens}}`. The amount is null if there were calls and none has a price.
json to_json(const cost_sum& sum, std::string_view currency);

} // namespace troupe::load
