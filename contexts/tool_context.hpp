// What a tool sees: a callback's context, the call it answers, and when to
// stop.

#pragma once

#include "troupe/contexts/callback_context.hpp"

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
               std::stop_token stop)
    : callback_context(facts, std::move(agent_name), std::move(state)),
      function_call_id_(std::move(function_call_id)),
      stop_(std::move(stop)) {}

  const std::string& function_call_id() const noexcept {
    return function_call_id_;
  }

  /// Asked to stop when the run is cancelled; long work looks at it now and
  /// then.
  const std::stop_token& stop() const noexcept { return stop_; }

private:
  std::string function_call_id_;
  std::stop_token stop_;
};

} // namespace troupe
