// How a model is asked: one request in, a stream of responses out, without a
// thread that waits.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/environment.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// What a model is told about one tool.
struct tool_declaration {
  std::string name;
  std::string description;
  /// JSON Schema of the arguments, an object schema.
  value parameters;
};

/// Retries that a run has left, over all of its models. Thread-safe.
class retry_budget {
public:
  explicit retry_budget(std::size_t count) : left_(count) {}

  /// Whether there was one left, which is taken.
  bool take() noexcept {
    auto left = left_.load(std::memory_order_relaxed);
    while (left > 0)
      if (left_.compare_exchange_weak(left, left - 1))
        return true;
    return false;
  }

private:
  std::atomic<std::size_t> left_;
};

struct model_request {
  model_request() = default;

  /// The name of the agent that asks.
  std::string agent;
  /// The instruction after substitution.
  std::string system_instruction;
  /// The conversation so far, oldest first; shared with the session's events.
  std::vector<std::shared_ptr<const content>> contents;
  std::vector<tool_declaration> tools;
  /// JSON Schema that the answer's text has to fit as JSON, or null.
  value response_schema;
  /// Wire fields of the vendor's generation config, an object or null.
  value generation_config;
  /// Where simulated latency and the like get their time from.
  std::shared_ptr<troupe::environment> environment;
  /// What a model that asks again takes from; null: nobody counts.
  std::shared_ptr<retry_budget> retries;
  /// Asks the model to give up; it may then answer with anything or not at all.
  std::stop_token stop;
};

struct model_response {
  model_response() = default;

  explicit model_response(content answer) : said(std::move(answer)) {}

  content said;
  /// One piece of a streamed answer; the whole answer follows.
  bool partial = false;
  /// Wire fields for the event (`finishReason`, `usageMetadata`, `errorCode`,
  /// …) as an object, or null.
  value extra;
};

/// Receives partial responses, then exactly one that is not partial, or an
/// error. May be called on any thread.
using model_reply = std::function<void(result<model_response>)>;

/// A language model. `generate` returns at once; it may be called from several
/// threads at the same time.
class model {
public:
  virtual ~model() = default;

  virtual std::string name() const = 0;

  /// Starts one call. What it throws is `errc::model_failed`.
  virtual void generate(model_request request, model_reply reply) = 0;
};

using model_ptr = std::shared_ptr<model>;

} // namespace troupe
