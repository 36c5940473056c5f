// The runs of a session: their start by their policy, and their end.
//
// Invariant: runs that are not interleaved start in the order of their calls,
// each after the end of the one before. A run starts when the history that it
// reads is in memory; later runs wait behind it.

#include "troupe/actors/owners/durable_session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/agents/turns/delegation.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/contexts/first_invocation.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace troupe::actors {

namespace {

// The first invocation of the event with this id; empty if it is not there.
std::string first_invocation_of(const event_slice& events,
                                const std::string& event_id) {
  for (auto index = events.size(); index > 0; --index)
    if (const auto& said = *events[index - 1]; said.id == event_id)
      return first_invocation(said);
  return {};
}

} // namespace

void session_actor::receive(std::unique_ptr<start_run> wanted) {
  if (awaits_creation())
    return early_.push_back(std::move(wanted));
  see(wanted->user, wanted->app);
  if (wanted->control->has_left)
    return wanted->fail(cancelled_before_start());
  if (!created_)
    return refuse_unknown_start(std::move(wanted));
  if (wanted->session != nullptr && wanted->session != this)
    return wanted->fail(unknown_session(key()));
  // Before it has to wait: behind the end of the run there is nothing to
  // recover.
  if (auto free = check_not_active(*wanted); !free)
    return wanted->fail(free.error());
  if (waits_for_events(wanted))
    return;
  if (!runs_)
    runs_ = std::make_unique<run_desk>();
  // An active run starts anew if it was kept out.
  if (runs_->find(wanted->id) != nullptr || runs_->may_start(wanted->policy))
    return grant(std::move(wanted));
  if (wanted->policy == run_policy::reject)
    return wanted->fail(
      error(errc::busy,
            fmt::format("session {} already has a run", to_string(key()))));
  runs_->queue(std::move(wanted));
}

void session_actor::refuse_unknown_start(std::unique_ptr<start_run> wanted) {
  wanted->fail(unknown_session(key()));
}

void session_actor::grant(std::unique_ptr<start_run> next) {
  runs_->start({.invocation = next->invocation,
                .id = next->id,
                .run_id = next->message->event->invocation_id,
                .first_read = first_read(*next),
                .newest_max = next->reads.newest_max});
  publish();
  next->view = runs_->view();
  next->granted_by = ref(*this);
  // `deliver`, not `handle`: the session may have to load when the run starts.
  owner_actor::deliver(std::move(next->message));
  const auto invocation = next->invocation;
  invocation->tell(std::move(next));
}

void session_actor::receive(std::unique_ptr<end_run> ended) {
  see(std::move(ended->user), std::move(ended->app));
  if (!runs_ || !runs_->end(ended->id))
    refuse_waiting_start(ended->id);
  if (!runs_)
    return;
  // Before the next run starts: the callers wait for a session without runs.
  if (!runs_->has_active())
    for (auto held = runs_->take_until_end(); !held.empty();) {
      renew(held.front());
      owner_actor::deliver(held.pop_front());
    }
  if (auto next = runs_->take_next())
    grant(std::move(next));
  if (runs_->empty())
    runs_.reset();
}

// Checks the message of a run against the calls that it answers. If it
// continues a paused run, the claim is written into the message, so that no
// other message can claim the same pause, and the message names the first
// invocation. While a task is open, the message is marked as one that belongs
// to it.
result<void> session_actor::claim(append& next) {
  auto resumed
    = check_responses(next.event->content, events_.slice(), next.rights);
  next.is_pause_taken = !resumed && resumed.error().code() == errc::conflict;
  if (!resumed)
    return resumed.error();
  if (auto found = find_answered(next); !found)
    return found;
  if (has_responses(next.event->content)) {
    static const std::vector<std::string> no_tasks;
    if (auto fits
        = check_delegated(next.event->content,
                          events_.slice().live(),
                          next.rights.tasks ? *next.rights.tasks : no_tasks);
        !fits)
      return fits;
  }
  const auto scope
    = next.rights.tasks ? scope_of_message(
        next.event->content, events_.slice().live(), *next.rights.tasks)
                        : scope_of(*next.event);
  if (!*resumed && !claim_of(*next.event) && scope == scope_of(*next.event))
    return {};
  // The message may be judged for a second time, after other processes have
  // written: drop an earlier claim and an earlier task.
  auto claiming = std::make_shared<event>(*next.event);
  claiming->actions.extra = {};
  set_first_invocation(*claiming, {});
  set_scope(*claiming, scope);
  if (*resumed) {
    const auto& id = (*resumed)->event_id;
    if (batch_.claims(id))
      return error(errc::conflict, "another message answers the same question");
    claim_pause(*claiming, id);
    set_first_invocation(*claiming,
                         first_invocation_of(events_.slice().live(), id));
  }
  next.own = claiming;
  next.event = std::move(claiming);
  return {};
}

result<void> session_actor::check_not_active(const start_run& wanted) const {
  const auto& run = wanted.message->event->invocation_id;
  if (!wanted.message->claims)
    return {};
  const bool is_ending
    = shared().store && shared().store->is_closing(key(), run);
  if (!is_ending && (!runs_ || !runs_->has_active(run, wanted.id)))
    return {};
  return error(errc::busy,
               fmt::format("run '{}' of session {} is active in this process; "
                           "wait for its end, or cancel it",
                           run,
                           to_string(key())));
}

// Decides the claim, perhaps again after other processes have written. Whether
// the run is still free is decided by the commit (`run_mark::taken_from`). Over
// a store without open runs the claim fails if the run was recovered meanwhile.
result<void> session_actor::claim_run(append& next) {
  auto& claim = *next.claims;
  next.is_kept_out = false;
  // The run was cancelled, and its history may have left memory.
  if (!runs_ || runs_->find(next.reply_to.id()) == nullptr)
    return cancelled_before_start();
  if (auto read = find_answered(next); !read) {
    // The session was stale when the start was granted, so the history from the
    // message of the run was not read. The start is sent again, and reads it.
    next.is_kept_out = true;
    return error(errc::busy,
                 fmt::format("the history of run '{}' of session {} is not in "
                             "memory yet; recover it again",
                             claim.wish.invocation_id,
                             to_string(key())));
  }
  // If this process is the holder, the run is not active: the process has left
  // it, and the store does not know that yet.
  const auto& from = claim.wish.free_holder;
  claim.wish.was_left = from && (is_left(*from) || *from == shared().holder_id);
  auto found = find_recoverable(events_.slice(), claim.wish, &claim.is_over);
  if (!found)
    return found.error();
  if (!claim.wish.free_holder
      && claim.recoveries.value_or(found->recoveries) != found->recoveries)
    return error(errc::conflict,
                 fmt::format("another process has recovered run '{}' of "
                             "session {} meanwhile",
                             claim.wish.invocation_id,
                             to_string(key())));
  claim.recoveries = found->recoveries;
  claim.run = std::move(*found);
  if (claim.wish.free_holder) {
    auto taking = std::make_unique<run_mark>(*next.mark);
    taking->taken_from = {*claim.wish.free_holder, claim.silent_for};
    next.mark = std::move(taking);
  }
  auto claiming = std::make_shared<event>(*next.event);
  number_claim(*claiming, claim.run.recoveries + 1, claim.wish.was_left);
  set_first_invocation(*claiming, first_invocation(*claim.run.said));
  next.own = claiming;
  next.event = std::move(claiming);
  return {};
}

void session_actor::refuse_waiting_start(caf::actor_id run) {
  if (runs_)
    runs_->refuse(run, cancelled_before_start());
}

pending_view session_actor::make_view() {
  return runs_->make_view(
    {snapshot(), events_.slice().live(), events_.before(), trimmed_to_});
}

void session_actor::cancel_runs(const error& why) {
  if (!runs_)
    return;
  for (const auto& each : runs_->active())
    each.invocation->tell(std::make_unique<cancel>(why));
}

void session_actor::refuse_waiting_starts(const error& why) {
  if (!runs_)
    return;
  for (auto refused = runs_->take_waiting(); !refused.empty();)
    refused.pop_front()->fail(why);
}

// Runs that wait for their turn are refused first, so that none of them starts.
bool session_actor::waits_for_runs(std::unique_ptr<get>& wanted) {
  if (!wanted->ends_runs)
    return false;
  refuse_waiting_starts(*wanted->ends_runs);
  if (!session_actor::has_run())
    return false;
  cancel_runs(*wanted->ends_runs);
  runs_->await_end(std::move(wanted));
  return true;
}

// -- over a store -------------------------------------------------------------

// Refuses a run on a session that does not exist. Another process may have
// created the session meanwhile. The refusal therefore passes the queue like
// every decision, so that later letters do not overtake the run if it is
// decided again.
void durable_session::refuse_unknown_start(std::unique_ptr<start_run> wanted) {
  auto decided = make_commit(std::move(wanted));
  decided->refuses = true;
  push(std::move(decided));
}

// The loaded session may be another one, or has fewer events. Waiting runs
// search again where they start to read.
void durable_session::search_again() {
  ++cuts_;
  if (!runs_ || !created_)
    return;
  auto waiting = runs_->take_waiting();
  while (!waiting_.empty())
    waiting.push_back(waiting_.pop_front());
  waiting_ = std::move(waiting);
}

void durable_session::refuse_waiting_starts(const error& why) {
  session_actor::refuse_waiting_starts(why);
  letter_list still;
  while (!waiting_.empty()) {
    auto next = waiting_.pop_front();
    if (is_one_of<start_run>(*next))
      next->fail(why);
    else
      still.push_back(std::move(next));
  }
  waiting_ = std::move(still);
}

void durable_session::refuse_waiting_start(caf::actor_id run) {
  session_actor::refuse_waiting_start(run);
  refuse_start(
    waiting_, run, cancelled_before_start(), [](const start_run&) {});
}

} // namespace troupe::actors
