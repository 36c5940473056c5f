// How models are asked over HTTP: headers, time-outs, retries, rates.

#pragma once

#include "troupe/core/error.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Names and values. Names keep their spelling and are compared without case.
using http_headers = std::vector<std::pair<std::string, std::string>>;

/// Time limits of a request; each is kept between one millisecond and 30 days.
/// `connect` and `first_byte` start when the request has its place among the
/// requests to its host. `total` includes the wait for that place.
struct http_timeouts {
  /// Until the connection is established, with TLS.
  std::chrono::milliseconds connect{10'000};
  /// Until the first line of the answer.
  std::chrono::milliseconds first_byte{120'000};
  /// Longest pause between two pieces of an answer.
  std::chrono::milliseconds between{60'000};
  /// For the whole request, from its start.
  std::chrono::milliseconds total{600'000};

  friend bool operator==(const http_timeouts&, const http_timeouts&) = default;
};

/// The rule for retries of a failed request.
///
/// Retried are: status 408, 429 and 500 or higher; broken connections and
/// streams; connection time-outs; and failures inside a stream that
/// correspond to such a status. Not retried are: bad certificates,
/// headers that are too large, all other time-outs, and every request
/// that has delivered a piece of a streamed answer. The run limits
/// retries too (`run_options::model_retries_max`).
///
/// A request that the server refuses because of an optional form of the request
/// is sent at once without that form. This counts as an attempt.
struct retry_rule {
  /// Maximum number of attempts, the first included; at least 1.
  std::size_t attempts_max = 4;
  /// The wait before the second attempt is random between zero and `first`. The
  /// upper bound doubles with each attempt, up to `longest`.
  std::chrono::milliseconds first{1'000};
  /// Upper limit of the random wait.
  std::chrono::milliseconds longest{30'000};
  /// A server's `Retry-After` is added to the wait. One above this value ends
  /// the retries.
  std::chrono::milliseconds retry_after_max{120'000};

  friend bool operator==(const retry_rule&, const retry_rule&) = default;
};

/// A request that failed and is sent again after a wait.
struct model_retry {
  std::string agent;   ///< Name of the calling agent.
  error reason;        ///< The failure, with vendor, model and attempt.
  std::size_t attempt; ///< Number of the next attempt, from 2.
  std::chrono::milliseconds wait; ///< Time until the next attempt.
};

/// Limits of the requests to one opened model. Requests above them wait.
struct rate_limit_options {
  /// Unset for no limit.
  std::optional<double> requests_per_minute = {};
  /// Unset for no limit. A request first counts with an estimate from its size,
  /// then with the total that the answer reports.
  std::optional<double> tokens_per_minute = {};

  friend bool operator==(const rate_limit_options&, const rate_limit_options&)
    = default;
};

} // namespace troupe
