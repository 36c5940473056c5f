// A model that adds a delay drawn from a distribution. Use it for experiments
// with latency that need no paid calls.

#pragma once

#include "troupe/models/model.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace troupe {

/// A distribution of the duration of a call.
struct latency {
  /// Shapes of the distribution. They differ in the meaning of `low` and
  /// `high`.
  enum class form : std::uint8_t {
    constant,    ///< Always `low`.
    uniform,     ///< From `low` to `high`.
    exponential, ///< With the mean `low`.
    lognormal,   ///< With the median `low` and the 99th percentile `high`.
  };

  /// Shape of the distribution.
  form shape = form::constant;
  /// First parameter of the shape; at least 0.
  std::chrono::nanoseconds low{0};
  /// Second parameter of the shape; unused by `constant` and `exponential`.
  std::chrono::nanoseconds high{0};

  /// Returns the latency at `fraction` of the distribution, from 0 to below 1.
  std::chrono::nanoseconds at(double fraction) const;

  friend bool operator==(const latency&, const latency&) = default;
};

/// Upper limit of a latency, requested or drawn.
inline constexpr std::chrono::hours latency_max{24};

/// Parses `{"constant": MS}`, `{"uniform": {"from_ms", "to_ms"}}`,
/// `{"exponential": {"mean_ms"}}` or `{"lognormal": {"median_ms", "p99_ms"}}`.
/// Fails with `errc::invalid_argument`.
result<latency> latency_from_json(const json& data);

/// Latencies by agent name. `"*"` applies to all other agents; without it they
/// are not delayed.
using latencies = std::map<std::string, latency, std::less<>>;

/// Calls another model after a delay. The delay of a call is drawn from `seed`,
/// the agent's name and the number of its call. So it does not depend on the
/// order in which agents call. A request without an environment is not delayed.
/// Thread-safe if the wrapped model is.
class delayed_model : public model {
public:
  /// Wraps `asked`, which must not be null.
  delayed_model(model_ptr asked, latencies delays, std::uint64_t seed);

  /// Name of the wrapped model.
  std::string name() const override { return asked_->name(); }

  void generate(model_request request, model_reply reply) override;

  result<void> check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                  bool beside_functions) const override {
    return asked_->check_vendor_tools(wanted, beside_functions);
  }

private:
  std::chrono::nanoseconds draw(const std::string& agent);

  const model_ptr asked_;
  const latencies delays_;
  const std::uint64_t seed_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> calls_; // Number of calls by agent.
};

} // namespace troupe
