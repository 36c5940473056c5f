// Sends requests to receivers over HTTP, one after the other, on the calling
// thread.

#pragma once

#include "troupe/telemetry/options.hpp"
#include "troupe/telemetry/otlp/outcome.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace troupe::telemetry {

/// A connection to receivers, which is kept between requests. Not thread-safe.
class post {
public:
  /// `gives_up` ends a request under way when it becomes true. It outlives this
  /// object. Throws `std::bad_alloc`.
  explicit post(const std::atomic<bool>& gives_up);
  ~post();

  post(const post&) = delete;
  post& operator=(const post&) = delete;

  /// Sends `body` and waits for the answer, up to the time limit of the
  /// receiver.
  reply send(const receiver& to, const std::string& body);

private:
  struct connection;

  std::unique_ptr<connection> connection_;
};

} // namespace troupe::telemetry
