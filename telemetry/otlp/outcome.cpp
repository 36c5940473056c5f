#include "troupe/telemetry/otlp/outcome.hpp"

#include <algorithm>

namespace troupe::telemetry {

outcome outcome_of(const reply& answer) noexcept {
  if (answer.status >= 200 && answer.status < 300)
    return outcome::accepted;
  switch (answer.status) {
  case 0:
  case 429:
  case 502:
  case 503:
  case 504:
    return outcome::again;
  default:
    return outcome::refused;
  }
}

std::chrono::seconds wait_before_retry(const reply& answer,
                                       std::size_t tries) noexcept {
  constexpr std::chrono::seconds longest = std::chrono::minutes(5);
  if (answer.retry_after)
    return std::clamp(*answer.retry_after, std::chrono::seconds(1), longest);
  const auto doubled = std::min<std::size_t>(tries, tries_max) - 1;
  return std::chrono::seconds(std::int64_t{1} << doubled);
}

} // namespace troupe::telemetry
