// Invariant of a run: every event of its lanes passes here. Of the events with
// operations on the same set of `temp:` keys only one is under way at a time.
// Its operations are judged before it goes up, and installed when it is
// committed or dropped when it is refused. So no event is judged on `temp:`
// keys that may be taken back.

#include "troupe/actors/runs/invocation.hpp"

#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/append_letter.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/running/losses.hpp"
#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/running/temp_space.hpp"
#include "troupe/actors/runs/body.hpp"
#include "troupe/actors/runs/nested_session.hpp"
#include "troupe/actors/runs/tool_job.hpp"
#include "troupe/actors/runs/wait_answer.hpp"
#include "troupe/agents/turns/resumption.hpp"
#include "troupe/agents/turns/session_tokens.hpp"
#include "troupe/contexts/first_invocation.hpp"
#include "troupe/contexts/lanes/event_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

std::vector<std::string> tools_left_behind(const run_shared& run) {
  std::vector<std::string> names;
  const std::lock_guard guard(run.mutex);
  for (const auto& each : run.abandoned)
    if (const auto left = each.lock(); left && left->is_running())
      names.push_back(left->which().name());
  return names;
}

delta share_of(const delta& whole, scope where) {
  auto owned = whole;
  for (const auto other :
       {scope::session, scope::user, scope::app, scope::temp})
    if (other != where)
      owned.drop(other);
  return owned;
}

} // namespace

invocation_actor::invocation_actor(caf::actor_config& config,
                                   std::shared_ptr<run_shared> run,
                                   agent which,
                                   scope_state temp)
  : lane_actor(config,
               run,
               std::move(which),
               run->control->stop,
               std::make_shared<temp_space>(std::move(temp)),
               *this) {}

void invocation_actor::deliver(letter_ptr received) {
  if (!try_dispatch<append,
                    actors::emit,
                    start_run,
                    refused_run,
                    struct try_again,
                    struct cancel>(
        received, [this](auto sent) { receive(std::move(sent)); }))
    lane_actor::deliver(std::move(received));
}

// -- the start on the session -------------------------------------------------

void invocation_actor::receive(std::unique_ptr<start_run> granted) {
  run_->view = std::move(granted->view);
  run_->history = granted->history;
  run_->session = std::move(granted->granted_by);
}

void invocation_actor::receive(std::unique_ptr<refused_run> refused) {
  end(cancelled() ? *cancelled() : refused->why);
}

void invocation_actor::receive(std::unique_ptr<struct cancel> wished) {
  if (cancelled())
    return;
  cancel_lane(wished->reason);
  if (started_)
    return;
  if (kept_out_)
    return end(error(cancelled()->code(),
                     fmt::format("{} (it waited: {})",
                                 cancelled()->message(),
                                 kept_out_->outcome.error().message())));
  // The run may still wait in its session, which then refuses its start.
  leave_session();
}

// The session has refused the message: a run of another process is open, or has
// continued from the pause that the message answers; or the run that is to be
// recovered is not free any more, or its history is not in memory. By the
// policy `queue` the run waits for its end; by `reject` it begins only if that
// process has died. Meanwhile it stays the active run of its session here, and
// starts anew with each try: another process may have added events that its
// agents have to see.
void invocation_actor::keep_out(std::unique_ptr<append> message) {
  if (cancelled())
    return receive_message(*message);
  kept_out_ = std::move(message);
  if (!start_wait_) {
    const start_wait::settings chosen{
      .session = run_->facts.session,
      .invocation_id = run_->facts.invocation_id,
      .queues = run_->options.policy == run_policy::queue,
      .recovers = kept_out_->claims && kept_out_->claims->wish.free_holder,
      .is_alone = run_->options.policy != run_policy::interleave};
    start_wait_ = std::make_shared<start_wait>(
      run_->shared, chosen, std::make_shared<wait_answer>(*this, 0, nullptr));
  }
  start_wait_->await(kept_out_->outcome.error(), kept_out_->is_pause_taken);
}

// Another process may have answered another question of the same pause. Its run
// pauses again, and then the message fits.
bool invocation_actor::waits_for_pause(const append& answered) const {
  return answered.is_pause_taken && !answered.outcome && run_->shared->store
         && run_->options.policy == run_policy::queue;
}

void invocation_actor::receive(std::unique_ptr<struct try_again> told) {
  if (!kept_out_)
    return;
  if (told->holder) {
    if (!*told->holder)
      return end(told->holder->error());
    auto& claim = *kept_out_->claims;
    claim.wish.free_holder = std::move((*told->holder)->id);
    claim.silent_for = (*told->holder)->silent_for;
  }
  kept_out_->is_kept_out = false;
  kept_out_->is_pause_taken = false;
  kept_out_->reset();
  kept_out_->reply_to = ref<inbox_actor>(*this);
  auto wanted = std::make_unique<start_run>();
  wanted->key = run_->facts.session;
  wanted->control = run_->control;
  wanted->policy = run_->options.policy;
  wanted->reads = run_->root_agent->reads();
  wanted->invocation = ref<inbox_actor>(*this);
  wanted->id = id();
  wanted->message = std::move(kept_out_);
  run_->app->tell(std::move(wanted));
}

void invocation_actor::leave_session() {
  run_->control->has_left = true;
  auto leaving = std::make_unique<end_run>();
  leaving->key = run_->facts.session;
  leaving->id = id();
  run_->app->tell(std::move(leaving));
}

task<agent_end> invocation_actor::body() {
  auto end = co_await run_root(*this);
  if (end.paused)
    run_->control->wait_for(waits_of(*end.paused));
  co_return end;
}

void invocation_actor::finish(result<agent_end> outcome) {
  if (!outcome && cancelled() && outcome.error().code() == errc::cancelled)
    outcome = *cancelled();
  end(outcome ? result<void>() : result<void>(outcome.error()));
}

void invocation_actor::end(result<void> outcome) {
  if (run_->claim && (!outcome || !run_->went_on) && !stays_open(outcome)) {
    releasing_ = std::move(outcome);
    return release();
  }
  leave_session(std::move(outcome));
}

// Releases the claimed pause, so that its answer can be sent again. Done before
// the run leaves the session, and thus before the next run starts.
void invocation_actor::release() {
  auto told
    = make_release_event(run_->root_agent->name(), run_->claim->message_id);
  told.invocation_id = run_->facts.invocation_id;
  set_first_invocation(told, run_->first_invocation);
  auto letter = make_append(std::move(told), {}, *run_->shared);
  if (!letter)
    return leave_session(std::move(*releasing_));
  (*letter)->reply_to = ref<inbox_actor>(*this);
  run_->session->tell(std::move(*letter));
}

void invocation_actor::released(const append& answered) {
  constexpr int tries_max = 3;
  // The session loads again after a failure of the store; try again then.
  if (!answered.outcome && answered.outcome.error().code() == errc::store_failed
      && ++release_tries_ < tries_max)
    return release();
  // On other failures the session is gone, and the claim with it.
  if (answered.outcome)
    run_->control->deliver(*answered.outcome);
  leave_session(std::move(*releasing_));
}

// The outcome of a failed commit is unknown: the message may be stored.
void invocation_actor::note_opened(const append& message) {
  const bool is_unknown
    = !message.outcome && message.outcome.error().code() == errc::store_failed;
  if (!message.mark || (!message.outcome && !is_unknown))
    return;
  if (is_unknown && message.claims)
    return leave_claimed(*message.claims);
  is_open_ = true;
  run_->shared->store->add_run();
}

// Leaves a claimed run that this process does not execute to others. No effect
// if the claim was not stored.
void invocation_actor::leave_claimed(const run_claim& claim) {
  if (!claim.run.said)
    return;
  auto& kept = *run_->shared->store;
  kept.add_run();
  kept.leave_run(
    run_->facts.session,
    run_->facts.invocation_id,
    run_->root_agent->name(),
    left_holder(run_->shared->holder_id, claim.run.recoveries + 1));
}

// A run that its holder or the end of its runtime has left stays open, so that
// another process can recover it. So does one whose recovery has found other
// agents or lost keys: the next program may have the right agents, or may allow
// the loss.
bool invocation_actor::stays_open(const result<void>& outcome) const {
  return is_open_ && !outcome && (run_->is_refused || run_->control->is_left());
}

void invocation_actor::close_in_store(const result<void>& outcome) {
  if (!is_open_)
    return;
  auto& kept = *run_->shared->store;
  if (!stays_open(outcome))
    return kept.close_run(run_->facts.session, run_->facts.invocation_id);
  // The run must keep out no runs of other processes, and its next recovery
  // must not count as one from a process that has crashed.
  const auto& own = run_->shared->holder_id;
  kept.leave_run(run_->facts.session,
                 run_->facts.invocation_id,
                 run_->root_agent->name(),
                 run_->is_refused ? refused_holder(own, run_->recoveries)
                                  : left_holder(own, run_->recoveries));
}

// A run that can never be recovered does not stay in the list of open runs.
void invocation_actor::close_if_over(const run_claim& refused) {
  if (refused.is_over && refused.wish.free_holder)
    run_->shared->store->close_run_of(run_->facts.session,
                                      run_->facts.invocation_id,
                                      *refused.wish.free_holder);
}

void invocation_actor::leave_session(result<void> outcome) {
  start_wait_.reset();
  close_in_store(outcome);
  leave_session();
  if (!outcome)
    if (const auto left = tools_left_behind(*run_); !left.empty())
      outcome = error(outcome.error().code(),
                      fmt::format("{} (abandoned tools that did not stop: {})",
                                  outcome.error().message(),
                                  fmt::join(left, ", ")));
  run_->shared->runs.leave(0);
  run_->control->end(std::move(outcome));
  quit();
}

// -- events of the lanes ------------------------------------------------------

void invocation_actor::receive(std::unique_ptr<actors::emit> sent) {
  take(*sent->from, *sent->request);
}

void invocation_actor::emit(emit_request& request) {
  take(*this, request);
}

// Takes an event from a lane. Plugins see it once, before it may have to wait.
void invocation_actor::take(lane_actor& from, emit_request& request) {
  auto& said = request.event;
  said.invocation_id = run_->facts.invocation_id;
  if (!said.partial && !request.temp_only)
    if (auto watched
        = watch_event(run_->shared->plugins, run_->facts.session, said);
        !watched)
      return answer(from, request, watched.error());
  // After the plugins, which may have replaced the event.
  if (!from.nested())
    set_first_invocation(said, run_->first_invocation);
  send(from, request);
}

void invocation_actor::answer(lane_actor& from,
                              emit_request& request,
                              result<event_ptr> outcome) {
  request.outcome = std::move(outcome);
  from.post(request.waiting);
}

void invocation_actor::send(lane_actor& from, emit_request& request) {
  if (cancelled())
    return answer(from, request, *cancelled());
  auto& said = request.event;
  if (said.partial) {
    said.actions.state_delta.drop(scope::temp);
    auto piece = std::make_shared<const event>(std::move(said));
    if (!from.nested())
      run_->control->deliver(piece);
    return answer(from, request, std::move(piece));
  }
  if (said.actions.state_delta.share(scope::temp).empty())
    return send_on(from, request);
  if (from.temp()->under_way != nullptr)
    return wait_for_temp(from, request);
  send_with_temp(from, request);
}

void invocation_actor::wait_for_temp(lane_actor& from, emit_request& request) {
  auto waiting = std::make_unique<actors::emit>();
  waiting->from = &from;
  waiting->request = &request;
  from.temp()->waiting.push_back(std::move(waiting));
}

bool invocation_actor::judge_temp(lane_actor& from, emit_request& request) {
  auto& temp = *from.temp();
  temp.share = share_of(request.event.actions.state_delta, scope::temp);
  std::vector<resolution> resolved;
  result<void> judged;
  if (request.basis)
    judged = request.basis->compare(scope::temp, temp.share, temp.state.keys());
  if (judged)
    judged = temp.state.judge(
      temp.share.share(scope::temp), resolved, true, run_->facts.limits);
  if (!judged)
    answer(from, request, judged.error());
  return judged.has_value();
}

void invocation_actor::send_with_temp(lane_actor& from, emit_request& request) {
  if (!judge_temp(from, request))
    return;
  if (run_->shared->store && !from.nested())
    from.temp()->note_names();
  // The result of an element is stored with an event.
  if (from.temp()->tell_result(request.event))
    request.temp_only = false;
  if (request.temp_only) {
    from.temp()->install();
    if (request.basis)
      tell_losses(*run_, *request.basis, request.event);
    return answer(from, request, event_ptr());
  }
  from.temp()->under_way = &request;
  send_on(from, request);
}

void invocation_actor::send_on(lane_actor& from, emit_request& request) {
  if (from.nested())
    return keep_nested(from, request);
  from.temp()->tell_names(request.event);
  auto letter = make_append(std::move(request.event), {}, *run_->shared);
  if (!letter) {
    if (auto& temp = *from.temp(); temp.under_way == &request) {
      temp.under_way = nullptr;
      temp.state.drop_last();
    }
    return answer(from, request, letter.error());
  }
  // Not counted by `admit`: events of running agents are never refused as
  // `busy`. They are bounded, since each lane has one uncommitted event at
  // most.
  (*letter)->makes_id = (*letter)->makes_id || request.has_new_id;
  (*letter)->reply_to = ref<inbox_actor>(*this);
  (*letter)->request = &request;
  (*letter)->basis = std::move(request.basis);
  (*letter)->lane = &from;
  run_->session->tell(std::move(*letter));
}

// Keeps an event of an agent that is a tool: the nested session decides it.
void invocation_actor::keep_nested(lane_actor& from, emit_request& request) {
  auto kept
    = from.nested()->append(std::move(request.event), request.basis.get());
  auto& temp = *from.temp();
  if (temp.under_way == &request) {
    temp.under_way = nullptr;
    if (kept)
      temp.install();
    else
      temp.state.drop_last();
  }
  if (kept && request.basis)
    tell_losses(*run_, *request.basis, **kept);
  if (kept) {
    from.hear(*kept);
    if (request.listener != nullptr)
      request.listener->hear_commit(request.key, *kept);
  }
  answer(from, request, std::move(kept));
}

// Continues a run that another process began. Its agents read the history as
// if it had not ended.
void invocation_actor::recover(const recorded_run& found) {
  run_->history.message = found.message;
  run_->facts.user_content = found.said->content;
  run_->claim = claim_of(*found.said);
  run_->recoveries = found.recoveries + 1;
  run_->first_invocation = first_invocation(*found.said);
  if (auto cause = cause_in(*found.said); !cause.parent.empty())
    run_->facts.trace = std::move(cause);
  const auto events = run_->view->read().events;
  run_->recovered
    = std::make_shared<const recovered_run>(events, run_->facts.invocation_id);
  if (events.newest_rewind() > found.message)
    run_->rewound = events.newest_rewind();
  for (const auto& each : events)
    if (each->invocation_id == run_->facts.invocation_id)
      run_->tokens += tokens_of(*each);
}

void invocation_actor::receive_message(const append& answered) {
  note_opened(answered);
  if (!answered.outcome) {
    if (answered.claims)
      close_if_over(*answered.claims);
    // The outcome is unknown: the message, with its claim, may be stored.
    if (answered.event
        && answered.outcome.error().code() == errc::store_failed) {
      run_->claim = claim_of(*answered.event);
      run_->first_invocation = first_invocation(*answered.event);
    }
    return end(cancelled() ? *cancelled() : answered.outcome.error());
  }
  started_ = true;
  run_->history.message = answered.number;
  run_->history.answered = answered.answered_from;
  if (answered.claims) {
    recover(answered.claims->run);
  } else {
    run_->claim = claim_of(**answered.outcome);
    run_->first_invocation = first_invocation(**answered.outcome);
  }
  start_body();
}

void invocation_actor::receive(std::unique_ptr<append> answered) {
  if (releasing_)
    return released(*answered);
  if (answered->is_kept_out || waits_for_pause(*answered))
    return keep_out(std::move(answered));
  if (answered->starts_run)
    return receive_message(*answered);
  auto& request = *answered->request;
  const bool again
    = answered->joined && answered->outcome
      && (*answered->outcome)->invocation_id == run_->facts.invocation_id;
  auto& lane = *answered->lane;
  // The lane may end before the last events with its `temp:` keys are
  // committed.
  const auto temp = lane.temp();
  if (temp->under_way == &request) {
    temp->under_way = nullptr;
    // The `temp:` keys of a retry were installed with the original event,
    // unless an earlier process has emitted that. The result of an element was
    // restored.
    const bool is_repeated
      = again && run_->recovered && !temp->keeps_result()
        && run_->recovered->number_of((*answered->outcome)->id) > 0;
    if (answered->outcome && (!again || is_repeated))
      temp->install();
    else
      temp->state.drop_last();
  }
  // Before the event: its receiver finds the losses.
  if (answered->outcome && !again && answered->basis)
    tell_losses(*run_, *answered->basis, **answered->outcome);
  if (answered->outcome && !answered->joined)
    tell_event(run_->shared->plugins,
               run_->facts.session,
               **answered->outcome,
               run_->shared->on_warning);
  // As in ADK, a summary is stored, and is no event of the run. Nor is an event
  // that was there before, such as one that a node has emitted before it asked.
  if (answered->outcome && !answered->joined && !run_->is_compacting)
    run_->control->deliver(*answered->outcome);
  if (answered->outcome) {
    temp->forget_names(**answered->outcome);
    lane.hear(*answered->outcome);
    if (request.listener != nullptr)
      request.listener->hear_commit(request.key, *answered->outcome);
  }
  request.outcome = std::move(answered->outcome);
  while (temp->under_way == nullptr && !temp->waiting.empty()) {
    const auto next = take_as<actors::emit>(temp->waiting.pop_front());
    send(*next->from, *next->request);
  }
  // The root lane continues at once; other lanes in their own jobs.
  if (&lane == this)
    go_on(request.waiting);
  else
    lane.post(request.waiting);
}

} // namespace troupe::actors
