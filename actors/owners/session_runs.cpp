// The runs of a session: their start by their policy, and their end.
//
// Invariant: runs that are not interleaved start in the order of their calls,
// each after the end of the one before. A run starts when the history that it
// reads is in memory; later runs wait behind it.

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/run_control.hpp"
#include "troupe/agents/turns/resumption.hpp"

#include <fmt/format.h>

namespace troupe::actors {

void session_actor::receive(std::unique_ptr<start_run> wanted) {
  if (awaits_creation())
    return early_.push_back(std::move(wanted));
  see(wanted->user, wanted->app);
  if (wanted->control->has_left)
    return wanted->fail(cancelled_before_start());
  if (!created_ && stored_)
    return refuse_behind_others(std::move(wanted));
  if (!created_ || (wanted->session != nullptr && wanted->session != this))
    return wanted->fail(unknown_session(key()));
  // Queued after earlier starts: runs start in the order of their calls.
  if (has_waiting_starts() || !has_history_for(*wanted))
    return stored_->waiting.push_back(std::move(wanted));
  if (!runs_)
    runs_ = std::make_unique<run_desk>();
  if (runs_->may_start(wanted->policy))
    return grant(std::move(wanted));
  if (wanted->policy == run_policy::reject)
    return wanted->fail(
      error(errc::busy,
            fmt::format("session {} already has a run", to_string(key()))));
  runs_->queue(std::move(wanted));
}

void session_actor::grant(std::unique_ptr<start_run> next) {
  runs_->start(
    {next->invocation, next->id, first_read(*next), next->reads.newest_max});
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
  if (auto next = runs_->take_next())
    grant(std::move(next));
  if (runs_->empty())
    runs_.reset();
}

// Checks the message of a run against the calls that it answers. If it
// continues a paused run, the claim is written into the message, so that no
// other message can claim the same pause.
result<void> session_actor::claim(append& next) {
  auto resumed
    = check_responses(next.event->content, events_.slice(), next.rights);
  if (!resumed)
    return resumed.error();
  if (auto found = find_answered(next); !found)
    return found;
  if (!*resumed && !claim_of(*next.event))
    return {};
  // The message may be judged for a second time, after other processes have
  // written: drop an earlier claim.
  auto claiming = std::make_shared<event>(*next.event);
  claiming->actions.extra = {};
  if (*resumed) {
    const auto& id = (*resumed)->event_id;
    if (batch_.claims(id))
      return error(errc::conflict, "another message answers the same question");
    claim_pause(*claiming, id);
  }
  next.own = claiming;
  next.event = std::move(claiming);
  return {};
}

bool session_actor::has_waiting_starts() const noexcept {
  return at_store().waiting.any_of(&is_one_of<start_run>);
}

// The loaded session may be another one, or has fewer events. Waiting runs
// search again where they start to read.
void session_actor::search_again() {
  ++stored_->cuts;
  if (!runs_ || !created_)
    return;
  auto waiting = runs_->take_waiting();
  while (!stored_->waiting.empty())
    waiting.push_back(stored_->waiting.pop_front());
  stored_->waiting = std::move(waiting);
}

void session_actor::refuse_waiting_start(caf::actor_id run) {
  const auto why = cancelled_before_start();
  if (runs_)
    runs_->refuse(run, why);
  if (stored_)
    refuse_start(stored_->waiting, run, why, [](const start_run&) {});
}

void session_actor::cancel_runs() {
  if (!runs_)
    return;
  for (const auto& each : runs_->active())
    each.invocation->tell(std::make_unique<cancel>(deleted_session(key())));
}

} // namespace troupe::actors
