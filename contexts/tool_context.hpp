// The context of a tool: that of a callback, with the call to answer and a
// stop token.

#pragma once

#include "troupe/contexts/callback_context.hpp"
#include "troupe/contexts/tool_call.hpp"

#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// The context of one call of a tool. Lives until the call ends.
class tool_context : public callback_context {
public:
  /// `confirmation` is the user's answer, unset if the user was not asked.
  /// `is_closed` becomes true when the call is given up; null if that cannot
  /// happen. `facts` and `is_closed` must outlive the context.
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
      confirmation_(std::move(confirmation)) {
    is_closed_ = is_closed;
  }

  /// Id of the call that the tool answers. The response repeats it.
  const std::string& function_call_id() const noexcept {
    return function_call_id_;
  }

  /// Requests a stop when the run is cancelled or the call has run out of time.
  /// A tool that works for long should check it.
  const std::stop_token& stop() const noexcept { return stop_; }

  /// The user's answer to `request_confirmation`, or to the question of the
  /// tool's options; unset before.
  const std::optional<tool_confirmation>& confirmation() const noexcept {
    return confirmation_;
  }

  /// Asks the user for confirmation when the tool has returned. The returned
  /// result and the recorded changes are discarded, and the run pauses. The
  /// run that brings the answer calls the tool again, with `confirmation()`
  /// set. A second question replaces the first. If the tool fails, the
  /// question is dropped.
  void request_confirmation(std::string hint, json payload = nullptr) {
    auto& asked = requested_.emplace();
    asked.hint = std::move(hint);
    asked.payload = std::move(payload);
  }

  /// The question of this call, if there is one.
  const std::optional<tool_confirmation>& requested() const noexcept {
    return requested_;
  }

  /// Adds media to the response of this call: inline data or file data, which
  /// the model gets after the tool's result, in the order of the calls of
  /// `attach`. They travel as `parts` of the function response. They are
  /// dropped if the tool fails, asks for a confirmation, or its result comes
  /// from outside. Throws `errc::invalid_argument` for another kind of part,
  /// for malformed data, and for data without a MIME type.
  void attach(part media);

  /// The attached media; they move to the caller.
  std::vector<part> take_attached() noexcept {
    return std::exchange(attached_, {});
  }

private:
  std::string function_call_id_;
  std::stop_token stop_;
  std::optional<tool_confirmation> confirmation_;
  std::optional<tool_confirmation> requested_;
  std::vector<part> attached_;
};

} // namespace troupe
