// A call of a tool on its way: through the tool's entrance, onto a thread of
// the pool, with the callbacks around it.
//
// Shared by the lane that waits for it and what runs it, which may outlive the
// run.

#pragma once

#include "troupe/actors/run_shared.hpp"
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

  /// `owner` is the agent whose tool it is; `stop` is its lane's.
  tool_job(std::shared_ptr<run_shared> run,
           agent owner,
           tool which,
           function_call call,
           std::optional<tool_confirmation> confirmation,
           std::shared_ptr<staged_deltas> staged,
           state seen,
           const std::stop_token& stop);

  using handler = std::function<void(const std::shared_ptr<tool_job>&)>;

  /// Set before `start`, called on any thread: when the tool begins to run,
  /// when it has returned, unless it was abandoned before, and when the tool is
  /// an agent and is to run: then `agent_ended` has to follow.
  handler on_begin;
  handler on_end;
  handler on_agent;

  /// Runs the tool once there is room for it.
  void start();

  /// What the agent said, and what it did to state and artifacts.
  void agent_ended(result<json> said, event_actions changed);

  /// The arguments as the callbacks have left them; for `on_agent`.
  const json& args() const noexcept { return args_; }

  const agent& owner() const noexcept { return owner_; }

  /// Keeps it from being run, if it has not begun; whether that was so.
  bool withdraw();

  /// Stops waiting for it: it is asked to stop, and not run if it has not
  /// begun. Returns what it was doing.
  phase abandon();

  bool is_running() const noexcept {
    return where_ != phase::returned && has_begun_;
  }

  const tool& which() const noexcept { return which_; }

  // Valid once it has returned.
  result<json> outcome = error(errc::cancelled, "the tool did not start");
  delta recorded;
  event_actions actions;
  std::optional<tool_confirmation> requested;
  // If the run tells the times of its steps.
  timestamp began{};
  timestamp ended{};

private:
  // In the run's count of tools that run at the same time.
  enum class place : std::uint8_t { none, held, left };

  void enter_tool();
  void leave_run();
  void work();
  void end();
  task<> perform();
  /// The result of the tool or of a callback in its place.
  task<json> produce();
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
  // Whether the context takes writes no more.
  std::atomic<bool> is_closed_{false};
  tool_context context_;
  json args_; // As the callbacks leave them.

  // Of an agent as a tool.
  class agent_await;
  std::coroutine_handle<> waiting_;
  result<json> said_ = json();
  event_actions changed_;

  std::atomic<phase> where_{phase::waiting};
  std::atomic<place> place_{place::none};
  std::atomic<bool> has_begun_{false};
};

} // namespace troupe::actors
