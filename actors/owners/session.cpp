// Invariants of a session:
//
// - At most one batch is under way. Its accepted letters will become events
//   `revision() + 1` and following, in order.
// - The log grows only in `commit`, after all wider owners have judged the
//   batch. So a refused event leaves nothing in any scope.
// - Appends, creations and removals are decided in the order of `queue_`.
// - An answer is sent after the log, the directory, the list index and the
//   view show the change. So a caller that has the answer sees its effect.

#include "troupe/actors/owners/session.hpp"

#include "troupe/actors/caf_interface.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/overwritten.hpp"
#include "troupe/actors/sessions/past.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

owner_name
name_of(const setup& shared, const user_names& above, const std::string& id) {
  return shared.store ? owner_name{above.app, above.user, id} : owner_name{""};
}

} // namespace

user_actor& session_actor::parent() const noexcept {
  return *kept_user_;
}

session_actor::session_actor(caf::actor_config& config,
                             std::shared_ptr<setup> shared,
                             user_actor& user,
                             std::shared_ptr<const user_names> names,
                             std::string id,
                             std::unique_ptr<idle_session> idle)
  : owner_actor(config, shared, name_of(*shared, *names, id)),
    kept_user_(user),
    names_(std::move(names)),
    id_(std::move(id)),
    stored_(shared->store ? std::make_unique<store_side>() : nullptr) {
  if (!idle)
    return;
  created_ = true;
  state_ = scope_state(std::move(idle->keys));
  events_ = std::move(idle->events);
  ids_ = std::move(idle->ids);
  last_update_time_ = idle->last_update_time;
  listing_ = std::move(idle->listed);
}

bool session_actor::has_key(const session_key& key) const noexcept {
  return id_ == key.id && names_->user == key.user && names_->app == key.app;
}

session_key session_actor::key() const {
  return {names_->app, names_->user, id_};
}

bool session_actor::enter(std::size_t bytes) noexcept {
  const auto& limits = shared().options;
  if (held_.enter(bytes, limits.session_appends_max, limits.session_bytes_max)
      && shared().appends.enter(bytes))
    return true;
  held_.leave(bytes);
  return false;
}

void session_actor::leave(std::size_t bytes) noexcept {
  held_.leave(bytes);
  shared().appends.leave(bytes);
}

void session_actor::ask_app(letter_ptr wanted) {
  parent().ask_app(std::move(wanted));
}

caf::behavior session_actor::make_behavior() {
  return session_interface(*this, share());
}

error session_actor::closed_reason() const {
  return shared().closing ? closed() : unknown_session(key());
}

// A run that has begun is cancelled with its session. Its message is the
// exception: it would begin the run, so it gets the answer of any append.
error session_actor::refusal_of(const letter& sent) const {
  const auto* const said = as<append>(sent);
  return said != nullptr && said->reply_to && !said->starts_run
             && !shared().closing
           ? deleted_session(key())
           : closed_reason();
}

void session_actor::see(scope_version user, scope_version app) {
  seen_user_ = std::move(user);
  seen_app_ = std::move(app);
}

state_snapshot session_actor::snapshot() const {
  return {state_.keys(), seen_user_.keys, seen_app_.keys, {}};
}

// -- messages -----------------------------------------------------------------

bool session_actor::is_for_now(const letter& received) const noexcept {
  return is_one_of<climb,
                   struct commit,
                   view_refresh,
                   read_events,
                   find_events,
                   retire,
                   end_run,
                   shut_down>(received);
}

void session_actor::note_use() noexcept {
  last_used_.store(shared().directory->clock(), std::memory_order_relaxed);
}

void session_actor::handle(letter_ptr received) {
  if (!is_one_of<retire>(*received))
    note_use();
  dispatch<append,
           climb,
           struct commit,
           get,
           create,
           forward,
           start_run,
           end_run,
           list,
           remove,
           view_refresh,
           read_events,
           find_events,
           retire,
           shut_down>(std::move(received),
                      [this](auto sent) { receive(std::move(sent)); });
}

void session_actor::receive(std::unique_ptr<append> sent) {
  queue_.push_back(std::move(sent));
}

void session_actor::receive(std::unique_ptr<create> wanted) {
  see(std::move(wanted->user), std::move(wanted->app));
  ++creations_;
  queue_.push_back(std::move(wanted));
}

void session_actor::receive(std::unique_ptr<remove> wanted) {
  queue_.push_back(std::move(wanted));
}

void session_actor::receive(std::unique_ptr<shut_down>) {
  shared().directory->remove(*this);
  quit();
}

void session_actor::receive(std::unique_ptr<forward> passed) {
  see(std::move(passed->user), std::move(passed->app));
  if (auto* const next = as<append>(*passed->held);
      next != nullptr && next->admitted_to != nullptr) {
    // The runtime counted the letter already, so the session must not refuse
    // it.
    held_.enter(next->bytes, SIZE_MAX, SIZE_MAX);
    next->admitted_to = nullptr;
    next->admitted_by = ref(*this);
  }
  handle(std::move(passed->held));
}

void session_actor::receive(std::unique_ptr<climb> answered) {
  climbing_ = false;
  if (answered->failed) {
    // The batch never reached the store's queue: its reserved place is gone.
    stored_->reserved = nullptr;
    auto number = revision();
    for (const auto* undone : batch_.accepted())
      if (++number; is_one_of<append>(*undone))
        ids_.forget(undone->event->id, number);
    batch_.drop_all(state_);
    for (auto& undone : batch_.letters()) {
      undone->refuse(*answered->failed);
      reply(std::move(undone));
    }
    return batch_.clear();
  }
  see(std::move(answered->user), std::move(answered->app));
  if (answered->last_refused && answered->all_or_nothing) {
    batch_.drop_creation(state_, std::move(*answered->last_refused));
  } else if (answered->last_refused) {
    const auto number = revision() + batch_.size();
    const auto& last
      = batch_.drop_last(state_, std::move(*answered->last_refused));
    ids_.forget(last.event->id, number);
  }
  commit();
}

void session_actor::finish_letters() {
  if (stored_)
    handle_early();
  while (!is_waiting() && !climbing_ && !queue_.empty()) {
    if (at_store().removing || at_store().comparing)
      return;
    if (!is_one_of<remove>(queue_.front()))
      start_batch();
    else if (!start_remove())
      return;
  }
  if (stored_)
    forget_found();
  else
    handle_early();
  // A session that does not exist ends as soon as it is idle.
  if (!created_)
    ask_to_retire();
}

// -- appending ----------------------------------------------------------------

// Commits the narrow events at the head of the queue at once. From the first
// wide event on, collects a batch and sends it up; narrow events after a wide
// one go along, since they come later in the session's order.
void session_actor::start_batch() {
  std::unique_ptr<climb> up;
  while (!queue_.empty() && !is_one_of<remove>(queue_.front())) {
    auto& front = static_cast<append&>(queue_.front());
    const bool wide = reaches(front, scope::user) || reaches(front, scope::app);
    // Narrow events before a wide one are committed first: they need not wait
    // for the climb.
    if (wide && !up && !batch_.empty())
      break;
    auto next = take_as<append>(queue_.pop_front());
    if (batch_.cut_off(next) || join_earlier(next))
      continue;
    if (at_store().comparing) {
      queue_.push_front(std::move(next));
      break;
    }
    const bool undecided = next->may_be_refused_by(scope::user)
                           || next->may_be_refused_by(scope::app);
    auto& last = batch_.add(std::move(next));
    if (!accept(last, undecided))
      continue;
    // A creation ends the batch: its answer shows the state without later
    // events.
    const bool creates = is_one_of<create>(last);
    if (!wide && creates)
      break;
    if (!wide)
      continue;
    if (!up) {
      up = std::make_unique<climb>();
      up->from = this;
    }
    add_to(*up, last);
    // An event that a wider owner may still refuse ends the batch. Later events
    // would be computed on state that may be taken back.
    if (undecided || creates)
      break;
  }
  if (!up)
    return commit();
  climbing_ = true;
  if (stored_) {
    up->decided = std::make_unique<struct commit>();
    stored_->reserved = up->decided.get();
  }
  parent().tell(std::move(up));
}

result<void> session_actor::check_existence(const append& next) const {
  const bool exists = created_ || batch_.creates();
  if (is_one_of<create>(next) && exists)
    return error(errc::already_exists,
                 fmt::format("session {} exists already", to_string(key())));
  if (is_one_of<append>(next) && !exists)
    return next.reply_to ? refusal_of(next) : unknown_session(key());
  return {};
}

result<void> session_actor::check_revision(const append& next) const {
  const auto now = revision() + batch_.size();
  if (!next.expected_revision || *next.expected_revision == now)
    return {};
  return error(errc::conflict,
               fmt::format("session {} is at revision {}, not {}",
                           to_string(key()),
                           now,
                           *next.expected_revision));
}

bool session_actor::accept(append& next, bool undecided) {
  auto judged = check_existence(next);
  if (judged)
    judged = check_revision(next);
  if (judged && next.starts_run)
    judged = claim(next);
  if (judged)
    judged = batch_.judge(next, state_, undecided, shared().options.limits);
  if (!judged) {
    next.refuse(judged.error());
    return false;
  }
  if (next.basis)
    name_overwritten(*next.basis, batch_.accepted(), events_);
  // Some accepted events of the batch may still be refused, so ids of as many
  // older events are kept.
  if (is_one_of<append>(next))
    note_id(next, revision() + batch_.size(), ids_kept() + batch_.size());
  return true;
}

void session_actor::commit() {
  state_.install();
  create* first = nullptr;
  for (auto* next : batch_.accepted()) {
    last_update_time_ = std::max(last_update_time_, next->event->timestamp);
    if (auto* const creation = as<create>(*next)) {
      first = creation;
    } else {
      auto kept = finish_event(*next);
      events_.push_back(kept);
      next->outcome = std::move(kept);
      next->number = revision();
      if (first != nullptr)
        note_id(*next, revision(), ids_kept());
    }
  }
  if (first != nullptr)
    finish_create(*first);
  if (stored_)
    send_to_store();
  else
    answer_at_once();
}

void session_actor::answer_at_once() {
  const auto count = batch_.size();
  batch_.settle();
  // Before the answers: a caller that has its answer finds the change in
  // `list`.
  if (listing_ && count > 0)
    listing_->touch(last_update_time_);
  if (shared().on_commit && count > 0)
    shared().on_commit(count);
  // The view before the answers: a run must see its own event when it
  // continues.
  publish();
  for (auto& answered : batch_.letters())
    reply(std::move(answered));
  batch_.clear();
}

event_ptr session_actor::finish_event(append& judged) {
  if (judged.resolved.empty())
    return judged.event;
  // Over a store the event may have to be judged again, so the original
  // operations are kept in `said`.
  if (!judged.own || stored_)
    judged.own = std::make_shared<event>(*judged.event);
  judged.own->actions.state_delta.resolve(judged.resolved);
  return judged.own;
}

void session_actor::appear() {
  note_use();
  shared().directory->add(*this);
  shared().retirement->note_entry();
}

void session_actor::finish_create(create& judged) {
  created_ = true;
  if (!stored_)
    listing_ = std::make_unique<listing>(names_, id_);
  // Before the answer: a caller that has it finds the session.
  appear();

  // Look-ups that came before the creation start again at the app, after the
  // answer to the creation.
  while (!early_.empty())
    ask_app(early_.pop_front());
  judged.created = session(
    key(), readonly_state(snapshot()), {}, last_update_time_, revision());
}

void session_actor::reply(std::unique_ptr<append> answered) {
  while (!answered->followers.empty()) {
    auto follower = take_as<append>(answered->followers.pop_front());
    follower->outcome = answered->outcome;
    reply(std::move(follower));
  }
  if (is_one_of<create>(*answered))
    --creations_;
  if (!answered->reply_to)
    return answer(std::move(answered));
  const auto invocation = std::exchange(answered->reply_to, nullptr);
  invocation->tell(std::move(answered));
}

// -- the view of the runs -----------------------------------------------------

pending_view session_actor::make_view() {
  return runs_->make_view({snapshot(), events_.slice(), events_.before()});
}

// Over a store the view is published when its commit is durable.
void session_actor::publish() {
  if (runs_ && runs_->has_active() && !stored_)
    make_view().publish();
}

} // namespace troupe::actors
