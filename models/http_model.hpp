// A language model behind HTTP: asked by a wire format, over a client that
// holds no thread, and asked again when it is worth it.

#pragma once

#include "troupe/models/http_client.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/rate_limit.hpp"
#include "troupe/models/wire_format.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace troupe {

/// When a request that failed is sent again: on the status 408, 429 and from
/// 500 on, on broken connections and streams, on time-outs of the connection,
/// and on a failure within a stream that such a status would have told. Not on
/// certificates that do not fit, on headers that are too large, and on other
/// time-outs (`http_end::may_pass`); never once a piece of a streamed answer
/// has been delivered, and only as often as the run has retries left
/// (`run_options::model_retries_max`). A request that the server refuses for
/// what it can do without (`wire_format::without_refused`) is sent without that
/// at once, which counts as an attempt.
struct retry_rule {
  /// Times that a request is sent, the first one included; at least 1.
  std::size_t attempts_max = 4;
  /// The wait before the second attempt is drawn from zero to `first`, then
  /// from twice that, and so on up to `longest`.
  std::chrono::milliseconds first{1'000};
  std::chrono::milliseconds longest{30'000};
  /// What a `Retry-After` wants comes on top; one above this is no retry.
  std::chrono::milliseconds retry_after_max{120'000};

  friend bool operator==(const retry_rule&, const retry_rule&) = default;
};

struct http_model_options {
  /// What the model is called in reports: `"openai:gpt-x"`.
  std::string name = {};
  wire_format_ptr format = {};
  /// The vendor's name of it.
  std::string model = {};
  /// Without a slash at its end.
  std::string base_url = {};
  /// Asked for each call, on any thread; unset or empty: no key is sent. It
  /// is in no error, event or report. With a key, a plain `http` base URL must
  /// be of loopback, and is asked past every proxy; else the call fails with
  /// `errc::invalid_argument`.
  std::function<std::string()> key = {};
  /// Sent besides; each takes the place of what the format sends under its
  /// name. Keys go by `key`: these may be told.
  http_headers headers = {};
  /// Whether answers come in pieces, which a run delivers as partial events. A
  /// server that answers in one piece nevertheless is understood.
  bool streams = false;
  http_timeouts timeouts = {};
  retry_rule retries = {};
  /// Of an answer, in bytes, with all that frames it; a larger one fails.
  std::size_t answer_bytes_max = std::size_t{64} << 20U;
  /// Null: no limit.
  std::shared_ptr<rate_limit> limit = {};
  /// Null: the one that all models share.
  std::shared_ptr<http_client> client = {};
  /// Of the jitter.
  std::uint64_t seed = 1;
};

/// Fails its calls with `errc::model_failed`, or `errc::deadline_exceeded` on a
/// time-out; with `errc::invalid_argument` on what the format cannot carry,
/// `errc::busy` when too many wait for the host or the limit, and
/// `errc::cancelled`. The reason names provider, model, status, the provider's
/// code and message. Thread-safe.
class http_model : public model {
public:
  /// `format` is set.
  explicit http_model(http_model_options options);

  std::string name() const override { return shared_->name; }

  void generate(model_request request, model_reply reply) override;

private:
  class call;

  std::shared_ptr<const http_model_options> shared_;
  // Waits that were drawn so far.
  std::shared_ptr<std::atomic<std::uint64_t>> waits_
    = std::make_shared<std::atomic<std::uint64_t>>(0);
};

} // namespace troupe
