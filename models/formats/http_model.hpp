// A language model behind HTTP. Combines a wire format, a client that holds no
// thread, and retries.

#pragma once

#include "troupe/models/formats/wire_format.hpp"
#include "troupe/models/http/client.hpp"
#include "troupe/models/http/rate_limit.hpp"
#include "troupe/models/http_options.hpp"
#include "troupe/models/model.hpp"
#include "troupe/models/vertex/token_command.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace troupe {

struct http_model_options {
  /// Name in reports, for example `"openai:gpt-x"`.
  std::string name = {};
  wire_format_ptr format = {};
  /// The vendor's name of the model.
  std::string model = {};
  /// Base URL without a slash at its end.
  std::string base_url = {};
  /// Returns the key. Called for each model call, on any thread. If it is unset
  /// or returns an empty string, no key is sent. The key is in no error, event
  /// or report. With a key, a plain `http` base URL must be loopback, and every
  /// proxy is bypassed; otherwise calls fail with `errc::invalid_argument`.
  std::function<std::string()> key = {};
  /// Gives the key in place of `key`. If the server refuses it with the status
  /// 401, it is asked for another one, and the request is sent once more. Null
  /// for none.
  std::shared_ptr<token_command> token = {};
  /// Additional headers; each replaces a header of the format with the same
  /// name. They must not hold a key, because they may appear in reports.
  http_headers headers = {};
  /// Requests the answer in pieces, which a run delivers as partial events. A
  /// server that sends it in one piece nevertheless is supported.
  bool streams = false;
  http_timeouts timeouts = {};
  retry_rule retries = {};
  /// Called before the wait for each retry, on any thread.
  std::function<void(const model_retry&)> on_retry = {};
  /// Maximum size of an answer in bytes, with its framing. A larger answer
  /// fails with `errc::model_failed`.
  std::size_t answer_bytes_max = std::size_t{64} << 20U;
  /// Null for no limit.
  std::shared_ptr<rate_limit> limit = {};
  /// Null for `shared_http_client()`.
  std::shared_ptr<http_client> client = {};
  /// Seed of the random waits, which then are the same in every process. Unset:
  /// the waits come from the ids of the request's environment, so that those of
  /// two models and two processes differ. A simulated environment repeats them.
  std::optional<std::uint64_t> seed = {};
};

/// A model that is called over HTTP. Thread-safe.
///
/// Calls fail with `errc::model_failed`, with `errc::deadline_exceeded` on a
/// time-out, with `errc::invalid_argument` on content that the format cannot
/// carry, with `errc::busy` if too many requests wait for the host or the
/// limit, and with `errc::cancelled`. The message names provider and model, and
/// on an error status the status and the provider's own words.
class http_model : public model {
public:
  /// `options.format` must be set.
  explicit http_model(http_model_options options);

  std::string name() const override { return shared_->name; }

  void generate(model_request request, model_reply reply) override;

  result<void> check_vendor_tools(const std::vector<vendor_tool>& wanted,
                                  bool beside_functions) const override;

private:
  class call;

  std::shared_ptr<const http_model_options> shared_;
  // Number of waits drawn so far.
  std::shared_ptr<std::atomic<std::uint64_t>> waits_
    = std::make_shared<std::atomic<std::uint64_t>>(0);
};

} // namespace troupe
