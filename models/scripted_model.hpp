// A model that answers from data with simulated latency, so that everything
// runs offline and in the same way each time.

#pragma once

#include "troupe/models/model.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One answer. In its text `${instruction}` is replaced by the instruction,
/// without the part that names the agent (`model_request::identity`), and
/// `${input}` by the last user text that the model received.
struct scripted_reply {
  /// Text of the answer. An empty one is left out if there are function calls.
  std::string text = {};
  /// Function calls of the answer, after its text.
  std::vector<function_call> function_calls = {};
  /// If set, the whole answer. `text` and `function_calls` are then ignored,
  /// and nothing in it is replaced. `recording_model` writes replies of this
  /// form.
  std::optional<troupe::content> content = {};
  /// Wire fields for the event (`finishReason`, …) as an object, or null.
  /// Ignored unless `said` is set.
  value extra = {};
  /// If set, the call fails with `errc::model_failed` and this reason, whatever
  /// the other fields hold.
  std::optional<std::string> failure = {};
  /// Time until the reply. With 0 the model replies within `generate`.
  std::chrono::milliseconds latency{0};
};

/// Replies by agent name; `"*"` answers for all other agents.
using script = std::map<std::string, std::vector<scripted_reply>>;

/// Parses `{"agent": [reply, …]}`. A reply is a string, `{"text": string}`,
/// `{"function_calls": [{"name": string, "args": object}]}`, `{"content": {…}}`
/// (in wire form, with an optional `"extra": object` of wire fields for the
/// event) or `{"error": string}`. A function call may have an `"id": string`.
/// Each object may have `"latency_ms": number`, in whole milliseconds from 0 to
/// 24 hours. An agent needs at least one reply. Fails with
/// `errc::invalid_argument`, naming agent and reply.
result<script> script_from_json(const json& data);

/// Gives each agent its replies in order; the last one repeats. A call of an
/// agent without replies fails with `errc::model_failed`. Thread-safe.
class scripted_model : public model {
public:
  /// Takes the replies. A call of an agent with an empty list fails, even if
  /// `"*"` has replies.
  explicit scripted_model(script replies, std::string name = "scripted");

  /// Name as given to the constructor.
  std::string name() const override { return name_; }

  void generate(model_request request, model_reply reply) override;

  /// Accepts every tool, because a script plays the answers of any model.
  result<void> check_vendor_tools(const std::vector<vendor_tool>& /*wanted*/,
                                  bool /*beside_functions*/) const override {
    return {};
  }

private:
  struct agent_replies {
    std::vector<scripted_reply> replies;
    std::size_t next = 0;
  };

  std::string name_;
  std::mutex mutex_;
  std::map<std::string, agent_replies> agents_;
};

} // namespace troupe
