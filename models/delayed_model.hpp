// A model that takes as long as a distribution says, for experiments with
// latency that no vendor has to be paid for.

#pragma once

#include "troupe/models/model.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace troupe {

/// How long a call takes.
struct latency {
  enum class form : std::uint8_t {
    constant,    ///< Always `low`.
    uniform,     ///< From `low` to `high`.
    exponential, ///< With the mean `low`.
    lognormal,   ///< With the median `low` and the 99th percentile `high`.
  };

  form shape = form::constant;
  std::chrono::nanoseconds low{0};
  std::chrono::nanoseconds high{0};

  /// The latency at `fraction` of the distribution, from 0 up to but without 1.
  std::chrono::nanoseconds at(double fraction) const;

  friend bool operator==(const latency&, const latency&) = default;
};

/// The longest latency that may be asked for or drawn.
inline constexpr std::chrono::hours latency_max{24};

/// Reads `{"constant": MS}`, `{"uniform": {"from_ms", "to_ms"}}`,
/// `{"exponential": {"mean_ms"}}` or `{"lognormal": {"median_ms", "p99_ms"}}`.
/// Fails with `errc::invalid_argument`.
result<latency> latency_from_json(const json& data);

/// By agent name; `"*"` is for agents that are not named, which are not delayed
/// without it.
using latencies = std::map<std::string, latency, std::less<>>;

/// Asks another model once the latency has passed, drawn for each call of an
/// agent from `seed`, the agent's name and the number of its call: the order in
/// which agents ask changes nothing. Thread-safe.
class delayed_model : public model {
public:
  delayed_model(model_ptr asked, latencies delays, std::uint64_t seed);

  std::string name() const override { return asked_->name(); }

  void generate(model_request request, model_reply reply) override;

private:
  std::chrono::nanoseconds draw(const std::string& agent);

  const model_ptr asked_;
  const latencies delays_;
  const std::uint64_t seed_;
  std::mutex mutex_;
  std::map<std::string, std::uint64_t> calls_; // By agent.
};

} // namespace troupe
