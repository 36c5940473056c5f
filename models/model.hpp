// The interface of language models: one request in, a stream of responses out.
// No thread waits.

#pragma once

#include "troupe/core/content.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/models/trace_context.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Describes one tool to a model.
struct tool_declaration {
  /// Name that the model uses in its calls.
  std::string name;
  /// Purpose of the tool, as text for the model.
  std::string description;
  /// JSON Schema of the arguments; must be an object schema.
  value parameters;
};

/// A tool that the vendor of a model runs on its own servers. The model decides
/// when; its answer tells the calls and their results as parts, and the sources
/// in `groundingMetadata` (docs/models.md, "Tools that vendors run").
struct vendor_tool {
  vendor_tool() = default;

  /// Takes the name, and settings of the tool.
  explicit vendor_tool(std::string tool, value chosen = {})
    : name(std::move(tool)),
      settings(std::move(chosen)) {}

  /// One of the names that docs/models.md lists, such as `"google_search"`.
  std::string name;
  /// Settings in the vendor's wire form; an object or null.
  value settings;

  friend bool operator==(const vendor_tool&, const vendor_tool&) = default;
};

/// Tells the caller of a model that a failed call is the fault of the model's
/// server, so another model may answer. Thread-safe.
class outage_note {
public:
  /// Sets the note. A model calls this before it replies with the error.
  void set() noexcept { is_set_.store(true); }

  /// Returns true after `set`.
  bool is_set() const noexcept { return is_set_.load(); }

private:
  std::atomic<bool> is_set_{false};
};

/// Retries that remain in a run, over all of its models. Thread-safe.
class retry_budget {
public:
  /// Allows `count` retries; 0 allows none.
  explicit retry_budget(std::size_t count) : left_(count) {}

  /// Takes one retry. Returns false if none is left.
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

/// One call of a model.
struct model_request {
  model_request() = default;

  /// The name of the calling agent.
  std::string agent;
  /// An idempotency key: a request that is made again, because its run was
  /// recovered, has the same key. Empty if there is none, as for summaries.
  std::string key;
  /// The span of the call. A model that sends a request over HTTP sends it as
  /// headers. If it is empty, `invocation_context::ask` fills in
  /// `callback_context::trace` of the agent.
  trace_context trace;
  /// The instruction after substitution.
  std::string system_instruction;
  /// The part of `system_instruction` that tells the agent its name and its
  /// description; empty if it has no such part. For
  /// models that show or compare the instruction; no vendor gets it by itself.
  std::string identity;
  /// The conversation so far, oldest first. Shared with the session's events.
  std::vector<std::shared_ptr<const content>> contents;
  /// Tools that the model may call.
  std::vector<tool_declaration> tools;
  /// Tools that the vendor runs itself. A model fails with
  /// `errc::invalid_argument` if `check_vendor_tools` refuses them.
  std::vector<vendor_tool> vendor_tools;
  /// JSON Schema that the answer's text must fit as JSON; null for free text.
  value response_schema;
  /// Wire fields of the vendor's generation config; an object or null.
  value generation_config;
  /// Clock and timers, for example for simulated latency.
  std::shared_ptr<troupe::environment> environment;
  /// Retries that remain; null for no limit.
  std::shared_ptr<retry_budget> retries;
  /// Set by the model before it replies with an error if its server is down or
  /// over its limit; null if the caller does not ask for that.
  std::shared_ptr<outage_note> outage;
  /// Requests cancellation. The model may then reply with anything, or not
  /// reply.
  std::stop_token stop;
};

/// An answer of a model, or a piece of one.
struct model_response {
  model_response() = default;

  /// Makes a whole answer without wire fields.
  explicit model_response(troupe::content answer)
    : content(std::move(answer)) {}

  /// Content of the answer, or of the piece alone.
  troupe::content content;
  /// True for one piece of a streamed answer. The whole answer follows.
  bool partial = false;
  /// Wire fields for the event (`finishReason`, `usageMetadata`, `errorCode`,
  /// …) as an object, or null.
  value extra;
};

/// Returns the tokens of a call as the vendor counts them
/// (`usageMetadata.totalTokenCount`); nothing if the answer does not tell.
std::optional<double> total_tokens(const model_response& answer);

/// Receives any number of partial responses, then exactly one that is not
/// partial, or an error. May be called on any thread.
using model_reply = std::function<void(result<model_response>)>;

/// A language model. `generate` may be called from several threads at the same
/// time.
class model {
public:
  virtual ~model() = default;

  /// Name for error messages and measurements; several models may share it.
  virtual std::string name() const = 0;

  /// Starts one call and returns at once. An exception fails the call with
  /// `errc::model_failed`.
  virtual void generate(model_request request, model_reply reply) = 0;

  /// Checks that the model's vendor runs the `wanted` tools and, if
  /// `beside_functions` is true, that it runs them in a request that has
  /// functions (`model_request::tools`), too. Called when an agent is made or
  /// gets another model, and before a request; from any thread. Fails with
  /// `errc::invalid_argument`, whose message names model, tool and remedy. The
  /// default accepts only an empty list.
  virtual result<void>
  check_vendor_tools(const std::vector<vendor_tool>& wanted,
                     bool beside_functions) const;
};

/// Shared model; null stands for none.
using model_ptr = std::shared_ptr<model>;

} // namespace troupe
