// What instruction providers see: who is running, for whom, and the state,
// read-only.

#pragma once

#include "troupe/contexts/artifacts.hpp"
#include "troupe/contexts/lane_host.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace troupe {

/// Lives as long as the call that received it.
class readonly_context {
public:
  readonly_context(const run_facts& facts,
                   std::string agent_name,
                   troupe::state state)
    : facts_(&facts),
      agent_name_(std::move(agent_name)),
      state_(std::move(state)) {}

  readonly_context(const readonly_context&) = delete;
  readonly_context& operator=(const readonly_context&) = delete;

  const std::string& invocation_id() const noexcept {
    return facts_->invocation_id;
  }

  const std::string& agent_name() const noexcept { return agent_name_; }

  const session_key& session() const noexcept { return facts_->session; }

  /// The message that started the run.
  const content& user_content() const noexcept { return facts_->user_content; }

  const readonly_state& state() const noexcept { return state_; }

  readonly_artifacts artifacts() const noexcept {
    return readonly_artifacts(*facts_);
  }

protected:
  // Outlived by the run, whose actor owns it.
  const run_facts* facts_;
  std::string agent_name_;
  troupe::state state_;
};

} // namespace troupe
