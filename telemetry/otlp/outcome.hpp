// The outcome of one request to a receiver, and the wait before the next try.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace troupe::telemetry {

/// The answer of a receiver.
struct reply {
  /// Status of HTTP; 0 if there was no answer.
  long status = 0;
  /// Value of `Retry-After`, if there is one.
  std::optional<std::chrono::seconds> retry_after;
  /// Body of the answer, or the reason why there is none.
  std::string text;
};

/// Consequence of an answer.
enum class outcome : std::uint8_t {
  accepted, ///< The receiver has the records.
  again,    ///< The same request may be accepted later.
  refused,  ///< The same request would be refused again.
};

/// Tries of one request; afterwards its records are dropped.
inline constexpr std::size_t tries_max = 5;

/// OTLP allows a retry after 429, 502, 503 and 504, and without an answer.
outcome outcome_of(const reply& answer) noexcept;

/// Returns the time before the next try. `tries` counts those that were made,
/// from 1. The receiver's own wish counts, up to five minutes; else the times
/// are 1, 2, 4 and 8 seconds.
std::chrono::seconds wait_before_retry(const reply& answer,
                                       std::size_t tries) noexcept;

} // namespace troupe::telemetry
