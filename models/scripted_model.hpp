// A model that answers from data, with simulated latency, so that everything
// runs offline and the same way each time.

#pragma once

#include "troupe/models/model.hpp"

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

/// One answer. In its text, `${instruction}` stands for the instruction that
/// the model received and `${input}` for the last user text that it received.
struct scripted_reply {
  std::string text = {};
  std::vector<function_call> function_calls = {};
  /// The whole answer in place of both, and wire fields of its event, as
  /// `recording_model` keeps them; or null.
  std::optional<content> said = {};
  value extra = {};
  /// When set, the call fails with this reason.
  std::optional<std::string> failure = {};
  std::chrono::milliseconds latency{0};
};

/// Replies by agent name; `"*"` answers for agents that are not named.
using script = std::map<std::string, std::vector<scripted_reply>>;

/// Reads `{"agent": [reply, …]}`, a reply being a string, `{"text": string}`,
/// `{"function_calls": [{"name": string, "args": object}]}`, `{"content": {…}}`
/// (in wire form, with an optional `"extra": object` of wire fields for the
/// event) or `{"error": string}`, each with an optional `"latency_ms": number`.
/// Fails with `errc::invalid_argument`, naming agent and reply.
result<script> script_from_json(const json& data);

/// Replies in order per agent; the last one repeats. An agent without replies
/// fails with `errc::model_failed`. Thread-safe.
class scripted_model : public model {
public:
  explicit scripted_model(script replies, std::string name = "scripted");

  std::string name() const override { return name_; }

  void generate(model_request request, model_reply reply) override;

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
