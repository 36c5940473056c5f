// Invariants of a session:
//
// - At most one batch is under way. Its accepted letters will become events
//   `revision() + 1` and following, in order.
// - The log grows only in `install_batch`, after all wider owners have judged
//   the batch. So a refused event leaves nothing in any scope.
// - Appends, creations and removals are decided in the order of `queue_`.
// - An answer is sent after the log, the directory, the list index and the
//   view show the change. So a caller that has the answer sees its effect.
// - No letter is lost. Each letter that the actor does not handle is refused,
//   or handed to the actor that takes its place, in order.

#include "troupe/actors/owners/session.hpp"

#include "troupe/actors/caf_interface.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/forked_past.hpp"
#include "troupe/actors/sessions/overwritten.hpp"
#include "troupe/actors/sessions/past.hpp"
#include "troupe/core/support/applied_operations.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

user_actor& session_actor::parent() const noexcept {
  return *kept_user_;
}

session_actor::session_actor(caf::actor_config& config,
                             std::shared_ptr<setup> shared,
                             user_actor& user,
                             std::shared_ptr<const user_names> names,
                             std::string id,
                             owner_name name)
  : owner_actor(config, std::move(shared), std::move(name)),
    kept_user_(user),
    names_(std::move(names)),
    id_(std::move(id)) {}

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

live_owners session_actor::owners(bool user, bool app) const {
  return {live(),
          user ? parent().live() : nullptr,
          app ? parent().app().live() : nullptr};
}

state_snapshot session_actor::snapshot() const {
  return {state_.keys(), seen_user_.keys, seen_app_.keys, {}};
}

// -- messages -----------------------------------------------------------------

void session_actor::note_use() noexcept {
  last_used_.store(shared().directory->clock(), std::memory_order_relaxed);
}

void session_actor::handle(letter_ptr received) {
  if (!is_one_of<retire>(*received))
    note_use();
  dispatch<append,
           climb,
           get,
           follow,
           create,
           forward,
           start_run,
           end_run,
           list,
           remove,
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
  if (answered->failed)
    return undo_batch(*answered->failed);
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

void session_actor::undo_batch(const error& why) {
  auto number = revision();
  for (const auto* undone : batch_.accepted())
    if (++number; is_one_of<append>(*undone))
      ids_.forget(undone->event->id, number);
  batch_.drop_all(state_);
  for (auto& undone : batch_.letters()) {
    undone->refuse(why);
    reply(std::move(undone));
  }
  batch_.clear();
}

void session_actor::finish_letters() {
  while (!is_waiting() && !climbing_ && !removing_ && !comparing_
         && !queue_.empty()) {
    if (!is_one_of<remove>(queue_.front())) {
      start_batch();
      continue;
    }
    auto removal = take_as<remove>(queue_.pop_front());
    if (!refuse_changed(removal) && !start_remove(std::move(removal)))
      return;
  }
  handle_early();
  // A session that does not exist ends as soon as it is idle.
  if (!created_)
    ask_to_retire();
}

void session_actor::handle_early() {
  if (is_waiting() || awaits_creation())
    return;
  for (auto early = std::exchange(early_, letter_list()); !early.empty();) {
    renew(early.front());
    handle(early.pop_front());
  }
}

// The letter carries the versions of the time when it arrived. The session must
// not go back to them.
void session_actor::renew(letter& parked) const {
  if (auto* const down = look_up_of(parked)) {
    down->user = seen_user_;
    down->app = seen_app_;
  }
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
    if (comparing_) {
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
    // So does a rewind: a later message is compared with the events that are
    // left.
    const bool ends = is_one_of<create>(last) || last.rewound_from;
    if (!wide && ends)
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
    if (undecided || ends)
      break;
  }
  if (!up)
    return commit();
  climbing_ = true;
  reserve_place(*up);
  parent().tell(std::move(up));
}

// A parent that has lost events and got others instead may be at the same
// revision again, as the same incarnation.
result<void> session_actor::check_past(const append& next) const {
  const auto* const creation = as<create>(next);
  if (creation == nullptr || !creation->fork || !shared().store
      || creation->fork->losses == shared().store->losses())
    return {};
  return error(errc::conflict,
               fmt::format("the store lost events while session {} was made "
                           "from session '{}': fork it again",
                           to_string(key()),
                           creation->fork->from.session));
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

result<void> session_actor::check_revision(
  const std::optional<std::uint64_t>& expected) const {
  const auto now = revision() + batch_.size();
  if (!expected || *expected == now)
    return {};
  return error(errc::conflict,
               fmt::format("session {} is at revision {}, not {}",
                           to_string(key()),
                           now,
                           *expected));
}

result<void> session_actor::check_removal(const remove_options& options) const {
  if (options.updated_before && last_update_time_ >= *options.updated_before)
    return error(errc::conflict,
                 fmt::format("session {} was updated", to_string(key())));
  return check_revision(options.expected_revision);
}

bool session_actor::refuse_changed(std::unique_ptr<remove>& removal) {
  if (!created_)
    return false;
  auto judged = check_removal(removal->options);
  if (judged)
    return false;
  removal->outcome = judged.error();
  removal->live = live();
  removal->generation = generation();
  parent().tell(std::move(removal));
  return true;
}

// A run that has begun reads events that the rewind takes back. The newest
// event is in memory, or among those that were accepted before.
result<void> session_actor::check_rewind(const append& next) const {
  if (has_run())
    return error(errc::conflict,
                 fmt::format("session {} has an active run: cancel it or wait "
                             "for its end, and rewind then",
                             to_string(key())));
  const auto newest = batch_.size() > 0 ? batch_.accepted().back()->event
                      : events_.has(revision()) ? events_.at(revision())
                                                : event_ptr();
  if (newest && newest->id == *next.rewound_from)
    return {};
  return error(errc::conflict,
               fmt::format("session {} has other events than when the rewind "
                           "was made; rewind again",
                           to_string(key())));
}

// Another process may have recovered the run, or rewound the session, since the
// run began. Its next event would follow on a conversation that has gone on
// without it, or is gone.
result<void> session_actor::check_run_of(const append& next) const {
  if (!runs_)
    return {};
  const auto rewound = events_.newest_rewind();
  const auto* const run = runs_->find(next.reply_to.id());
  if (run == nullptr)
    return {};
  if (run->is_taken_over)
    return taken_over(*run);
  if (rewound == 0 || rewound < run->message)
    return {};
  return error(errc::cancelled,
               fmt::format("session {} was rewound while the run was active",
                           to_string(key())));
}

error session_actor::taken_over(const run_desk::active_run& run) const {
  return {errc::cancelled,
          fmt::format("another process has recovered run '{}' of session {}",
                      run.run_id,
                      to_string(key()))};
}

bool session_actor::has_run() const noexcept {
  return runs_ && runs_->has_active();
}

bool session_actor::accept(append& next, bool undecided) {
  auto judged = check_existence(next);
  if (judged)
    judged = check_past(next);
  if (judged)
    judged = check_revision(next.expected_revision);
  if (judged && next.rewound_from)
    judged = check_rewind(next);
  if (judged && next.reply_to && !next.starts_run)
    judged = check_run_of(next);
  if (judged && next.starts_run)
    judged = next.claims ? claim_run(next) : claim(next);
  if (judged)
    judged = batch_.judge(next, state_, undecided, shared().options.limits);
  if (!judged) {
    const bool is_over = next.claims && next.claims->is_over;
    next.refuse(judged.error());
    if (is_over)
      next.claims->is_over = true;
    return false;
  }
  if (next.basis)
    name_overwritten(*next.basis, batch_.accepted(), events_);
  // The events that are not acknowledged may still be taken back, so ids of as
  // many older ones are kept.
  if (next.starts_run && runs_)
    if (auto* const run = runs_->find(next.reply_to.id()))
      run->message = revision() + batch_.size();
  if (is_one_of<append>(next))
    note_id(next,
            revision() + batch_.size(),
            ids_kept() + batch_.size() + (revision() - acknowledged()));
  return true;
}

void session_actor::install_batch() {
  state_.install();
  create* first = nullptr;
  for (auto* next : batch_.accepted()) {
    last_update_time_ = std::max(last_update_time_, next->event->timestamp);
    if (auto* const creation = as<create>(*next)) {
      first = creation;
      if (creation->fork)
        take_past(*creation->fork);
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
}

event_ptr session_actor::finish_event(append& judged) {
  if (judged.resolved.empty())
    return judged.event;
  if (!judged.own)
    judged.own = std::make_shared<event>(*judged.event);
  auto& actions = judged.own->actions;
  // A rewind says itself which operations it undoes.
  if (!judged.rewound_from)
    actions.applied = applied_by(actions.state_delta, judged.resolved);
  actions.state_delta.resolve(judged.resolved);
  return judged.own;
}

void session_actor::appear() {
  note_use();
  shared().directory->add(*this);
  shared().retirement->note_entry();
}

void session_actor::finish_create(create& judged) {
  created_ = true;
  // Before the answer: a caller that has it finds the session.
  appear();

  // Look-ups that came before the creation start again at the app, after the
  // answer to the creation.
  while (!early_.empty())
    ask_app(early_.pop_front());
  judged.created = session(key(),
                           readonly_state(snapshot()),
                           {},
                           last_update_time_,
                           revision(),
                           session_moment::now,
                           trimmed_to_);
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

// -- readers that follow the session ------------------------------------------

void session_actor::receive(std::unique_ptr<follow> wanted) {
  wanted->stop_counting();
  if (wanted->receiver->is_over() || waits_for_store(wanted))
    return;
  if (const auto wrong = check_place(*wanted,
                                     {created_,
                                      created_ ? incarnation() : 0,
                                      acknowledged(),
                                      trimmed_to_,
                                      events_});
      wrong != misplacement::none)
    return end_follow(std::move(wanted), wrong);
  if (!wanted->place && live()) {
    const auto end = end_for(*wanted);
    return answer_follow(std::move(wanted),
                         followed{{}, {end, nullptr, incarnation()}});
  }
  if (!wanted->place)
    wanted->place.emplace(follow_place{acknowledged(), nullptr, 0});
  if (wanted->place->number >= acknowledged())
    return keep(std::move(wanted));
  wanted->count_in(shared().calls);
  hand_out(std::move(wanted));
}

void session_actor::keep(std::unique_ptr<follow> waiting) {
  auto& place = *waiting->place;
  place.incarnation = incarnation();
  if (!place.last && events_.has(place.number))
    place.last = events_.at(place.number);
  waiting->is_wish = false;
  if (!followers_)
    followers_ = std::make_unique<followers>(place.incarnation);
  followers_->keep(std::move(waiting));
}

// The events are acknowledged, so the answer needs no confirmation.
void session_actor::hand_out(std::unique_ptr<follow> wanted) {
  const auto& place = *wanted->place;
  const auto first = place.number - events_.before();
  const auto count = std::min<std::uint64_t>(acknowledged() - place.number,
                                             follow::events_max);
  auto events = events_.slice().part(first, first + count);
  auto last = events.back();
  wanted->outcome = followed{
    std::move(events), {place.number + count, std::move(last), incarnation()}};
  answer(std::move(wanted));
}

// The places of waiting readers were checked when their letters were kept, and
// hold as long as the session is not loaded again. The first answer is counted
// until the jobs that deliver all of them are.
void session_actor::answer_followers() {
  if (!followers_ || followers_->empty())
    return;
  bool is_counted = false;
  for (auto waiting = followers_->take(); !waiting.empty();) {
    auto next = take_as<follow>(waiting.pop_front());
    const auto number = next->place->number;
    if (number >= acknowledged()) {
      followers_->keep(std::move(next));
    } else if (number >= events_.before()) {
      if (!std::exchange(is_counted, true))
        next->count_in(shared().calls);
      hand_out(std::move(next));
    } else {
      receive(std::move(next));
    }
  }
}

void session_actor::end_follow(std::unique_ptr<follow> ended,
                               misplacement why) {
  auto reason = to_error(why, key(), *ended, acknowledged(), trimmed_to_);
  answer_follow(std::move(ended), std::move(reason));
}

void session_actor::answer_follow(std::unique_ptr<follow> answered,
                                  result<followed> outcome) {
  answered->outcome = std::move(outcome);
  answered->count_in(shared().calls);
  confirm(std::move(answered), owners(false, false), {generation()}, *this);
}

// -- end ----------------------------------------------------------------------

void session_actor::end(remove& removal) {
  shared().directory->remove(*this);
  quit();
  cancel_runs(deleted_session(key()));
  removal.outcome = created_;
  removal.gone = true;
}

void session_actor::fail_all(letter_list letters) const {
  while (!letters.empty()) {
    const auto next = letters.pop_front();
    next->fail(refusal_of(*next));
  }
}

void session_actor::release() {
  fail_all(std::exchange(queue_, letter_list()));
  fail_all(std::exchange(early_, letter_list()));
  if (runs_) {
    fail_all(runs_->take_waiting());
    fail_all(runs_->take_until_end());
  }
  runs_.reset();
  if (followers_)
    for (auto waiting = followers_->take(); !waiting.empty();) {
      const auto next = take_as<follow>(waiting.pop_front());
      next->fail(shared().closing
                   ? closed()
                   : to_error(misplacement::removed, key(), *next, revision()));
    }
}

bool session_actor::is_idle() const noexcept {
  return queue_.empty() && early_.empty() && batch_.empty() && !climbing_
         && !runs_ && !is_loading() && (!followers_ || followers_->empty());
}

bool session_actor::is_unknown_elsewhere() const noexcept {
  // Held by the directory, by the user, by the scheduler during this job, and
  // by the store's queue if the session was loaded.
  const std::size_t own = live() && live()->actor ? 4 : 3;
  return ctrl()->strong_refs == own && !has_letters();
}

void session_actor::ask_to_retire() {
  if (followers_)
    followers_->drop_ended();
  if (is_idle() && !std::exchange(asked_to_retire_, true))
    parent().tell(std::make_unique<retire>(retire::step::asked, id_));
}

void session_actor::receive(std::unique_ptr<retire> wished) {
  switch (wished->at) {
  case retire::step::suggested:
    return ask_to_retire();
  case retire::step::granted:
    asked_to_retire_ = false;
    // Out of the directory first: new appends then go to the app, which leads
    // them to the successor.
    if (!is_idle() || (created_ && !shared().directory->remove_unused(*this)))
      return parent().tell(std::make_unique<retire>(retire::step::stayed, id_));
    successor_ = ref(parent().app());
    return quit();
  case retire::step::kept:
    asked_to_retire_ = false;
    return;
  default:
    assert(false && "a step that is not a session's");
  }
}

bool session_actor::is_for_successor(const letter& sent) const noexcept {
  return successor_ && is_one_of<append, follow>(sent);
}

void session_actor::leave_behind(letter_ptr sent) {
  if (is_for_successor(*sent))
    left_.push_back(std::move(sent));
  else
    sent->fail(refusal_of(*sent));
}

void session_actor::tell_gone(std::unique_ptr<idle_session> idle) {
  auto gone = std::make_unique<retire>(retire::step::gone, id_);
  gone->left = std::exchange(left_, letter_list());
  gone->existed = created_;
  gone->idle = std::move(idle);
  parent().tell(std::move(gone));
}

// Forwards appends, and letters of followers, that were sent to this actor
// after it had left memory to the actor that takes its place.
void session_actor::turn_away(letter_ptr sent) {
  if (!is_one_of<append, follow>(*sent) || !is_for_successor(*sent))
    return sent->fail(refusal_of(*sent));
  auto passed = std::make_unique<forward>(*shared().directory);
  passed->key = key();
  shared().directory->start_forward(passed->key);
  passed->held = std::move(sent);
  successor_->tell(std::move(passed));
}

} // namespace troupe::actors
