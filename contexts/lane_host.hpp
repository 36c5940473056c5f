// What running code needs from the actor that runs it, as one small interface.
//
// A lane runs one coroutine at a time and that coroutine waits for one thing at
// a time; each request below lies in the frame of the coroutine that waits for
// it. Implemented by `actors/lane_actor`. They have constructors because g++ 12
// destroys temporary aggregates in a co_await expression twice.

#pragma once

#include "troupe/contexts/checkpoint.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/contexts/tool_confirmation.hpp"
#include "troupe/core/environment.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/key.hpp"
#include "troupe/core/state.hpp"
#include "troupe/models/model.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace troupe {

class agent;
struct artifact_service;
class invocation_context;
class tool;

/// What is the same for all of one run.
struct run_facts {
  std::string invocation_id;
  session_key session;
  content user_content;
  std::shared_ptr<troupe::environment> environment;
  size_limits limits;
  /// Null: the runtime keeps no artifacts.
  std::shared_ptr<const artifact_service> artifacts;
  /// Whether events say when their models and tools worked.
  bool step_times = false;
};

/// What a step of running code sees.
struct step_view {
  /// The number of the newest event, in the session.
  std::uint64_t revision() const noexcept { return before + events.size(); }

  state_snapshot state;
  event_slice events;
  /// Events of the session before those.
  std::uint64_t before = 0;
};

struct emit_request {
  emit_request() = default;

  event said;
  /// The delta holds nothing but `temp:` and is installed without an event.
  bool temp_only = false;
  result<event_ptr> outcome = event_ptr();
  std::coroutine_handle<> waiting;
};

struct model_call {
  model_call() = default;

  model_ptr asked;
  /// Of the partial events that the model streams.
  std::string branch;
  model_request request;
  result<model_response> outcome = model_response();
  std::coroutine_handle<> waiting;
};

/// One call of a turn; calls of a turn run concurrently.
struct tool_call {
  const tool* which = nullptr;
  function_call call;
  /// What the user has answered about it.
  std::optional<tool_confirmation> confirmation;
  result<json> outcome = json();
  /// The tool wants the user asked first, and has not run.
  std::optional<tool_confirmation> requested;
  /// What the tool recorded; empty if it failed.
  delta recorded;
  event_actions actions;
  /// When it worked, if it did and that is to be told.
  timestamp began{};
  timestamp ended{};
};

struct tool_turn {
  tool_turn() = default;

  /// Whose tools they are; lives as long as the request.
  const agent* owner = nullptr;
  /// Where they are called; the same.
  const invocation_context* caller = nullptr;
  std::vector<tool_call> calls;
  std::coroutine_handle<> waiting;
};

struct sleep_request {
  sleep_request() = default;

  std::chrono::nanoseconds duration{};
  result<void> outcome;
  std::coroutine_handle<> waiting;
};

struct refresh_request {
  refresh_request() = default;

  result<void> outcome;
  std::coroutine_handle<> waiting;
};

/// Events of the session by their numbers, which are not above the newest.
struct history_request {
  history_request() = default;

  std::uint64_t first = 1;
  std::uint64_t last = 0;
  result<event_slice> outcome = event_slice();
  std::coroutine_handle<> waiting;
};

class lane_host : public executor {
public:
  virtual const run_facts& facts() const noexcept = 0;

  /// The newest view, without a message.
  virtual step_view view() const = 0;

  /// The number of the oldest event that `which` reads.
  virtual std::uint64_t first_read(const agent& which) const = 0;

  virtual std::stop_token stop() const = 0;

  /// Each answers into the request and then posts `waiting`, exactly once.
  virtual void emit(emit_request& request) = 0;
  virtual void ask(model_call& request) = 0;
  virtual void call(tool_turn& request) = 0;
  virtual void sleep(sleep_request& request) = 0;
  virtual void refresh(refresh_request& request) = 0;
  virtual void read(history_request& request) = 0;

  /// The body of `which`, run below `caller` on this lane, from its beginning
  /// or, unless it is null, from a checkpoint.
  virtual task<agent_end>
  run(invocation_context& caller, const agent& which, checkpoint_ptr from) = 0;
};

} // namespace troupe
