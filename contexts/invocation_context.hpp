// What an agent's body sees: it emits events, asks models, calls tools, runs
// other agents and sleeps, each with `co_await`.
//
// Every await renews what `state()` reads. Awaits throw `troupe::error`; after
// a cancellation all of them throw `errc::cancelled`.

#pragma once

#include "troupe/contexts/callback_context.hpp"

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

namespace detail {

/// Suspends for one request of a lane; `Start` is the lane's member that takes
/// it.
template <class Request, void (lane_host::*Start)(Request&)>
class lane_await {
public:
  lane_await(lane_host& lane, Request request)
    : lane_(lane),
      request_(std::move(request)) {}

  bool await_ready() const noexcept { return false; }

  void await_suspend(std::coroutine_handle<> waiting) {
    request_.waiting = waiting;
    (lane_.*Start)(request_);
  }

  Request await_resume() { return std::move(request_); }

private:
  lane_host& lane_;
  Request request_;
};

} // namespace detail

class invocation_context : public callback_context {
public:
  /// `which` is the agent that runs; it outlives its context.
  invocation_context(lane_host& lane,
                     const agent& which,
                     std::string agent_name,
                     std::string branch,
                     const invocation_context* caller);

  /// Where in nested fan-outs this runs: `parent.parallel.sub`, or empty.
  const std::string& branch() const noexcept { return branch_; }

  /// The context of the agent that called this one, or null at the root.
  const invocation_context* caller() const noexcept { return caller_; }

  /// The session's events as of the newest step, oldest first, as far back as
  /// the agent reads (`agent::reads_itself`), and all of its own run. A run
  /// that brings an answer shows them from the message on that began the run
  /// which asked. Custom agents show all unless they state less.
  const event_slice& events() const noexcept { return events_; }

  /// The number of the newest event in the session; the first event of all is
  /// number 1.
  std::uint64_t revision() const noexcept {
    return first_revision_ + events_.size() - 1;
  }

  /// The number of the first of `events()`; 1 if nothing comes before them.
  std::uint64_t first_revision() const noexcept { return first_revision_; }

  /// The newest `count` of `events()`, or all of a session that has fewer.
  /// Throws `errc::invalid_argument` where the agent reads less than that.
  event_slice history(std::size_t count) const;

  /// The `count` events before event number `revision`, oldest first; fewer
  /// where the session begins. They are read from the store, and stay in memory
  /// as long as the slice. So a loop walks back through any history:
  ///
  ///     for (auto next = context.first_revision(); next > 1;) {
  ///       const auto page = co_await context.events_before(next, 100);
  ///       …
  ///       next -= page.size();
  ///     }
  ///
  /// Throws `errc::invalid_argument` where `revision` is 0, or above the newest
  /// event by more than one.
  task<event_slice> events_before(std::uint64_t revision, std::size_t count);

  std::stop_token stop() const { return lane_.stop(); }

  /// Appends an event and gives it as it was committed. Author, branch and ids
  /// are filled in; the event carries what was recorded in `state()` and
  /// `actions()` so far. What cannot be committed (`errc::conflict`,
  /// `errc::type_error`, …) throws and leaves nothing behind. A `partial` event
  /// is passed to whoever follows the run, without its `temp:` keys; it carries
  /// nothing that was recorded, and nothing of it is stored.
  task<event_ptr> emit(event said);

  /// Emits `piece` as a partial event: one piece of a streamed answer.
  task<> emit_partial(event piece);

  /// Asks a model. Counts against the run's limit.
  task<model_response> ask(model_ptr asked, model_request request);

  /// Runs the calls concurrently and gives them back, answered, in their order.
  /// One that wants the user asked first comes back with `requested`, and has
  /// not run.
  task<std::vector<tool_call>> call(std::vector<tool_call> calls);

  /// Runs another agent below this one, in the same invocation. Throws
  /// `errc::circular_agent_call` if it is already running above.
  ///
  /// If that has to wait for an answer from outside, the body of this one is
  /// taken down (see `agent_paused`), and what it has written gets an event. It
  /// begins anew in the run that brings the answer: agents that had ended
  /// before are not run again there, the one that waited goes on, and this
  /// returns when it has ended.
  task<> run(const agent& other);

  /// Whether this agent has waited for an answer from outside, and goes on.
  /// What it emitted before is in `events()`, however little it reads else;
  /// `temp:` is empty.
  bool is_resumed() const noexcept { return from_ != nullptr; }

  /// Lets time pass without holding a thread.
  task<> sleep(std::chrono::nanoseconds duration);

  /// Renews the view with the owners' newest state, not only what this session
  /// has seen of it.
  task<> refresh();

  /// Renews the view with what this session has seen.
  void renew();

  /// Whether something is recorded that no event carries yet.
  bool has_leftovers() const noexcept;

  /// Emits what is left over, or installs it without an event if it is `temp:`
  /// alone.
  task<> emit_leftovers();

  /// Whether an event escalated here or below: enclosing loops end.
  bool has_escalated() const noexcept { return escalated_; }

  void mark_escalated() noexcept { escalated_ = true; }

  lane_host& lane() const noexcept { return lane_; }

  // -- for what runs agents --------------------------------------------------

  /// Goes on from a checkpoint.
  void resume(checkpoint_ptr from) { from_ = std::move(from); }

  /// That checkpoint, or null.
  const checkpoint_ptr& resumed_from() const noexcept { return from_; }

  /// Where an agent below has to wait, or null.
  const checkpoint_ptr& paused() const noexcept { return paused_; }

private:
  // The actor that runs this; it outlives every context of its run.
  lane_host& lane_;
  const agent* which_;
  std::string branch_;
  const invocation_context* caller_;
  event_slice events_;
  std::uint64_t first_revision_ = 1;
  bool escalated_ = false;

  // Agents that have ended below this one, in this run and before.
  std::uint64_t finished_ = 0;
  checkpoint_ptr from_;
  checkpoint_ptr paused_;
};

} // namespace troupe
