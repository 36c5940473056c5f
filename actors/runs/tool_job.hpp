// One tool call: waits for its slot, runs on a thread of the pool, and calls
// the callbacks around the tool.
//
// Shared by the lane that waits for it and the thread that runs it. The thread
// may outlive the run.

#pragma once

#include "troupe/actors/running/shared.hpp"
#include "troupe/agents/agent.hpp"
#include "troupe/agents/plugin.hpp"
#include "troupe/agents/tool.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/state.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace troupe::actors {

class tool_job : public std::enable_shared_from_this<tool_job> {
public:
  enum class phase : std::uint8_t { waiting, running, returned, abandoned };

  /// `owner` is the agent that has the tool; `stop` is the token of its lane.
  tool_job(std::shared_ptr<run_shared> run,
           agent owner,
           tool which,
           function_call call,
           std::optional<tool_confirmation> confirmation,
           std::shared_ptr<staged_deltas> staged,
           state seen,
           const std::stop_token& stop);

  using handler = std::function<void(const std::shared_ptr<tool_job>&)>;

  /// Set before `start`; called on any thread. `on_begin`: the tool starts to
  /// run. `on_end`: the call has ended and was not abandoned. `on_agent`: the
  /// tool is an agent and has to be run; `agent_ended` must follow.
  handler on_begin;
  handler on_end;
  handler on_agent;

  /// Starts the tool as soon as the limits allow it.
  void start();

  /// Ends the wait for an agent: its answer, its operations on state and
  /// artifacts, and the bases of the plain ones.
  void agent_ended(result<json> said,
                   event_actions changed,
                   std::vector<write_basis> based = {});

  /// The arguments, as changed by callbacks; for `on_agent`.
  const json& args() const noexcept { return args_; }

  const agent& owner() const noexcept { return owner_; }

  /// Cancels the call if the tool has not begun. Returns true if it was
  /// cancelled.
  bool withdraw();

  /// Stops waiting for the tool: requests it to stop, or prevents its start.
  /// Returns the phase that it was in.
  phase abandon();

  bool is_running() const noexcept {
    return where_ != phase::returned && has_begun_;
  }

  const tool& which() const noexcept { return which_; }

  // Valid after the call has ended.
  result<json> outcome = error(errc::cancelled, "the tool did not start");
  std::vector<part> attached;
  delta recorded;
  std::vector<write_basis> bases;
  event_actions actions;
  std::optional<tool_confirmation> requested;
  // Start and end of the tool, if `run_options` asks for step times.
  timestamp began{};
  timestamp ended{};

private:
  // Returns true if the work holds a thread of the pool until it ends.
  bool holds_thread() const noexcept;

  // Use of a slot in the run's limit of concurrent tools.
  enum class slot : std::uint8_t { none, held, left };

  void enter_tool();
  void leave_run();
  void work();
  void end();
  task<> perform();
  /// The result of the tool or of a callback in its place.
  task<json> produce();
  bool has_later_callbacks() const;
  template <class Hook, class... More>
  std::optional<json> first_answer(Hook plugin::*hook,
                                   std::vector<Hook> llm_options::*list,
                                   const More&... more);

  const std::shared_ptr<run_shared> run_;
  const agent owner_;
  const tool which_;
  const function_call call_;
  const std::shared_ptr<staged_deltas> staged_;
  std::stop_source stop_;
  std::stop_callback<std::function<void()>> follow_;
  // True if the context refuses writes from now on.
  std::atomic<bool> is_closed_{false};
  tool_context context_;
  json args_; // As changed by callbacks.

  // For an agent as a tool.
  class agent_await;
  class pool_await;
  std::coroutine_handle<> waiting_;
  result<json> said_ = json();
  event_actions changed_;
  std::vector<write_basis> changed_bases_;

  std::atomic<phase> where_{phase::waiting};
  std::atomic<slot> slot_{slot::none};
  std::atomic<bool> has_begun_{false};
};

} // namespace troupe::actors
