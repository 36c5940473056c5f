// The context of an agent's body. The body emits events, asks models, calls
// tools, runs other agents and sleeps, each with `co_await`.
//
// Every await refreshes the view that `state()` reads. Awaits throw
// `troupe::error`; after a cancellation all of them but `call`
// throw `errc::cancelled`.

#pragma once

#include "troupe/contexts/callback_context.hpp"
#include "troupe/contexts/task.hpp"
#include "troupe/contexts/tool_call.hpp"
#include "troupe/core/event_log.hpp"
#include "troupe/core/state_update.hpp"
#include "troupe/models/model.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

class agent;
enum class agent_step : std::uint8_t;
class commit_listener;
class lane_host;
struct checkpoint;
struct emit_request;

/// The context of one run of an agent's body. Lives as long as the body.
/// Not thread-safe.
class invocation_context : public callback_context {
public:
  /// `which` is the running agent; it must outlive the context.
  invocation_context(lane_host& lane,
                     const agent& which,
                     std::string agent_name,
                     std::string branch,
                     const invocation_context* caller);

  /// Path of nested fan-outs, `parent.parallel.sub`; empty outside of them.
  const std::string& branch() const noexcept { return branch_; }

  /// The context of the calling agent; null at the root.
  const invocation_context* caller() const noexcept { return caller_; }

  /// The session's events as of the last await, oldest first, without those
  /// that a rewind has taken back: those that the agent reads
  /// (`agent::reads_itself`), and all events of its own run. If the
  /// run's message answers calls of an earlier run, all events from the message
  /// of that run on are included. Custom agents read all events unless their
  /// options say less.
  const event_slice& events() const noexcept { return events_; }

  /// Number of the newest event; the first event of a session is number 1.
  std::uint64_t revision() const noexcept { return newest_; }

  /// Number where `events()` begin (`event_slice::first_number`); 1 if no event
  /// comes before them.
  std::uint64_t first_revision() const noexcept { return first_revision_; }

  /// Returns the newest `count` of `events()`, or all if the session has fewer.
  /// Throws `errc::invalid_argument` if the agent reads fewer than `count`.
  event_slice history(std::size_t count) const;

  /// Returns the `count` events before event number `revision`, oldest
  /// first; fewer at the beginning of the session, none before those that it
  /// was trimmed of, and without those that a
  /// rewind among them has taken back. They are read from the store, and stay
  /// in memory as long as the slice. A loop can walk back through any history:
  ///
  ///     for (auto next = context.first_revision(); next > 1;) {
  ///       const auto page = co_await context.events_before(next, 100);
  ///       …
  ///       next = page.first_number();
  ///     }
  ///
  /// Throws `errc::invalid_argument` if `revision` is 0, or more than one above
  /// the newest event, `errc::cancelled` if the session was deleted, and
  /// `errc::store_failed` or `errc::corrupt` if the events cannot be read.
  task<event_slice> events_before(std::uint64_t revision, std::size_t count);

  /// Requests a stop when the run or this lane is cancelled.
  std::stop_token stop() const;

  /// Appends an event and returns it as committed. A missing author, branch or
  /// id is filled in, the invocation id is that of the run, and the event
  /// carries the changes recorded in `state()` and `actions()`. Throws if the
  /// event is refused (`errc::conflict`, `errc::type_error`, …); nothing of it
  /// takes effect then, and the recorded changes are dropped.
  ///
  /// In the body of a custom agent, and in a node of a workflow, the missing id
  /// is made from the place of the body in its run and the number of the event.
  /// A body that runs again, in a further attempt or in a run that was
  /// recovered, gets the event that is stored under this id. Other content
  /// there fails with `errc::conflict`: the body must repeat its events.
  ///
  /// A `partial` event goes only to the caller of the run, without `temp:`
  /// keys; it carries no recorded changes and is not stored. In an agent that
  /// runs as a tool, a partial event goes nowhere. Other events of such an
  /// agent are not stored; their changes are committed with the tool's result.
  task<event_ptr> emit(event said);

  /// The same for an event whose own plain writes are based on reads of other
  /// steps.
  task<event_ptr> emit(event said, std::vector<write_basis> bases);

  /// Changes one key in an event of its own, and returns the new value. Calls
  /// `change` on this lane with the present value; if another event changes the
  /// key before this one is committed, calls it again with that value. So no
  /// concurrent change is lost. Changes that `state()` has recorded stay for
  /// the next event, and `change` does not see them.
  ///
  /// A body that runs again (see `emit`) gets the value that it has written
  /// before, and nothing is changed.
  ///
  /// g++ 12 destroys a lambda that captures objects twice in a `co_await`
  /// expression. So it must come from a variable; otherwise the call does not
  /// compile there.
  ///
  /// Throws the exceptions of `change`, after which nothing is written;
  /// `errc::conflict` after `run_options::update_retries_max` retries; and the
  /// errors of `emit`. In an agent that runs as a tool, the tool's result is
  /// refused with `errc::conflict` if the key has changed outside meanwhile.
  template <class Change>
  task<json> update(std::string key, Change&& change) {
    static_assert(detail::may_be_awaited_with<Change>,
                  "this lambda captures objects, which g++ 12 destroys twice "
                  "in a co_await expression: put it into a variable first, and "
                  "pass the variable to context.update");
    return update_with(std::move(key),
                       state_update(std::forward<Change>(change)));
  }

  /// Emits `piece` as a partial event, one piece of a streamed answer.
  task<> emit_partial(event piece);

  /// Asks a model and returns its whole answer; pieces of a streamed answer go
  /// to the caller of the run as partial events. The call counts against the
  /// run's limit. Throws `errc::model_failed`, `errc::limit_exceeded`,
  /// `errc::deadline_exceeded` after `run_options::model_timeout`, and other
  /// errors of the model.
  task<model_response> ask(model_ptr asked, model_request request);

  /// Runs the calls concurrently and returns them with their outcomes, in the
  /// same order. A call that needs the user's confirmation comes back with
  /// `requested` set; its result and changes are discarded. A failure is the
  /// `outcome` of its call and is not thrown, not even after a cancellation.
  /// The changes in `recorded` and `actions` are not committed by this call.
  task<std::vector<tool_call>> call(std::vector<tool_call> calls);

  /// Runs another agent below this one, in the same invocation. Throws the
  /// error of that agent, and `errc::circular_agent_call` if it is already
  /// running above.
  ///
  /// If that agent waits for an answer from outside, this body is unwound by an
  /// exception that is not a `std::exception`, and its recorded changes are
  /// emitted in an event. The body starts again in the run that brings the
  /// answer. In that run, agents that had ended are skipped, the waiting agent
  /// continues, and this call returns when it has ended.
  task<> run(const agent& other);

  /// Returns true if this agent has waited for an answer from outside and
  /// continues now. `events()` then includes its earlier events, whatever the
  /// agent reads otherwise; `temp:` is empty.
  bool is_resumed() const noexcept { return from_ != nullptr; }

  /// Waits without holding a thread. Throws `errc::cancelled` if the run or
  /// this lane is cancelled.
  task<> sleep(std::chrono::nanoseconds duration);

  /// Refreshes the view with the newest state of all owners. `renew` shows only
  /// the state that this session has seen. Throws `errc::cancelled` also if the
  /// session was deleted, and the errors of the store.
  task<> refresh();

  /// Refreshes the view with the state that this session has seen, without
  /// waiting. Throws `errc::cancelled` if the session has lost events that this
  /// run has seen.
  void renew();

  /// Returns true if changes are recorded that no event carries yet.
  bool has_leftovers() const noexcept;

  /// Emits the recorded changes. Changes of `temp:` alone are installed without
  /// an event.
  task<> emit_leftovers();

  /// Returns true if an event escalated here or below; enclosing loops
  /// end then.
  bool has_escalated() const noexcept { return escalated_; }

  /// Makes `has_escalated` true, for an escalation in lanes or in an
  /// earlier run.
  void mark_escalated() noexcept { escalated_ = true; }

  /// The lane that runs this body. Outlives the context.
  lane_host& lane() const noexcept { return lane_; }

  // -- for the code that runs agents ----

  /// Emits an event whose commit `listener` hears of, with `key`.
  task<event_ptr> emit_heard(event said,
                             std::vector<write_basis> bases,
                             commit_listener& listener,
                             std::uint64_t key);

  /// Sets the place of this agent in its run (contexts/lanes/event_place.hpp).
  void stand_at(std::string place) { place_ = std::move(place); }

  /// Returns that place; empty outside of agents.
  const std::string& place() const noexcept { return place_; }

  /// Returns the number of the next call of an agent of this name, from 1.
  std::uint64_t next_call_of(const std::string& name) { return ++calls_[name]; }

  /// Sets the number of models' answers that this agent got before its run was
  /// recovered: the next request is the one behind them.
  void skip_requests(std::uint64_t answered) noexcept { asked_ = answered; }

  /// Sets the step to which the next events belong.
  void set_step(agent_step step) noexcept { step_ = step; }

  /// Gives the events of the body ids that begin with `key` from now on, so
  /// that a body that runs again gets the events that are stored already.
  /// `repeats` tells that it may be such a body; `rewound` is that of
  /// `placed_id`.
  void number_events(std::string key, bool repeats, std::uint64_t rewound) {
    event_key_ = std::move(key);
    repeats_ = repeats;
    rewound_ = rewound;
  }

  /// Marks all events of this agent as those of a task: `scope` is the id of
  /// the call that delegated it (`isolationScope` on the wire). Empty: no task.
  void isolate(std::string scope) { scope_ = std::move(scope); }

  /// Returns the id of that call, or an empty text.
  const std::string& isolation_scope() const noexcept { return scope_; }

  /// Continues from a checkpoint.
  void resume(std::shared_ptr<const checkpoint> from) {
    from_ = std::move(from);
  }

  /// Returns that checkpoint, or null.
  const std::shared_ptr<const checkpoint>& resumed_from() const noexcept {
    return from_;
  }

  /// Returns the checkpoint of an agent below that has to wait, or null.
  const std::shared_ptr<const checkpoint>& paused() const noexcept {
    return paused_;
  }

protected:
  /// Ends this body by an exception, because it needs the answer to the call
  /// `call_id`. The run that brings the answer starts the body again. If the
  /// body waits for an earlier call already, it goes on waiting for that one.
  [[noreturn]] void wait_for(std::string call_id);

private:
  task<event_ptr> send(event said,
                       std::vector<write_basis> bases,
                       commit_listener* listener,
                       std::uint64_t key);
  task<json> update_with(std::string key, state_update change);
  // Makes the request for an event with these changes.
  emit_request make_update(const delta& changes) const;
  // Returns true if the next event gets an id by its number.
  bool numbers_events() const noexcept;
  // The outcome of an update that this body has committed when it ran before;
  // unset if there is none.
  std::optional<json> find_update(const std::string& id,
                                  const std::string& key) const;
  // Fills in author, branch, task and place.
  void complete(event& said) const;
  // The value of a key without the changes recorded here.
  std::optional<value> find_below(const std::string& key) const;
  // Makes the error for a session that no longer has the events that the run
  // has seen.
  error gone() const;

  // The actor that runs this; it outlives every context of its run.
  lane_host& lane_;
  const agent* which_;
  std::string branch_;
  std::string scope_;
  const invocation_context* caller_;
  event_slice events_;
  std::uint64_t first_revision_ = 1;
  std::uint64_t newest_ = 0;
  std::uint64_t oldest_ = 1; // Number of the first event that the session has.
  bool escalated_ = false;
  std::string place_;
  agent_step step_{};                          // Of the next event.
  std::map<std::string, std::uint64_t> calls_; // By name.
  std::string event_key_;
  bool repeats_ = false;
  std::uint64_t rewound_ = 0;
  std::uint64_t numbered_ = 0;
  std::uint64_t updates_ = 0;
  std::uint64_t asked_ = 0; // Requests of models.

  // Number of agents that have ended below this one, in this run and before.
  std::uint64_t finished_ = 0;
  std::shared_ptr<const checkpoint> from_;
  std::shared_ptr<const checkpoint> paused_;
};

} // namespace troupe
