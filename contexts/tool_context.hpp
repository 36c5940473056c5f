// What a tool sees: a callback's context, the call it answers, and when to
// stop.

#pragma once

#include "troupe/contexts/callback_context.hpp"
#include "troupe/contexts/tool_confirmation.hpp"

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

namespace troupe {

class tool_context : public callback_context {
public:
  tool_context(const run_facts& facts,
               std::string agent_name,
               troupe::state state,
               std::string function_call_id,
               std::stop_token stop,
               std::optional<tool_confirmation> confirmation = {},
               const std::atomic<bool>* is_closed = nullptr)
    : callback_context(facts, std::move(agent_name), std::move(state)),
      function_call_id_(std::move(function_call_id)),
      stop_(std::move(stop)),
      confirmation_(std::move(confirmation)),
      is_closed_(is_closed) {}

  const std::string& function_call_id() const noexcept {
    return function_call_id_;
  }

  /// Asked to stop when the run is cancelled; long work looks at it now and
  /// then.
  const std::stop_token& stop() const noexcept { return stop_; }

  /// A call that was given up saves and removes nothing more:
  /// `errc::cancelled`.
  troupe::artifacts artifacts() noexcept {
    return {*facts_, actions(), is_closed_};
  }

  /// What the user has answered to `request_confirmation`, or to the question
  /// that the tool's options have asked; nothing before.
  const std::optional<tool_confirmation>& confirmation() const noexcept {
    return confirmation_;
  }

  /// Has the user asked whether to go on. The call then comes to nothing: what
  /// the tool returns and has recorded is discarded, the run ends, and the tool
  /// is called again, with `confirmation()`, in the run that brings the answer.
  void request_confirmation(std::string hint, json payload = nullptr) {
    auto& asked = requested_.emplace();
    asked.hint = std::move(hint);
    asked.payload = std::move(payload);
  }

  /// What was asked in this call, if anything.
  const std::optional<tool_confirmation>& requested() const noexcept {
    return requested_;
  }

private:
  std::string function_call_id_;
  std::stop_token stop_;
  std::optional<tool_confirmation> confirmation_;
  std::optional<tool_confirmation> requested_;
  const std::atomic<bool>* is_closed_; // Of the call; null: it never is.
};

} // namespace troupe
