// A session over a store: commits, loads and eviction.
//
// Invariants: all decisions of the session enter the store's queue in the order
// in which they were made, refusals included. The queue answers in the same
// order. Letters that must be decided again go before all letters that came
// later (`requeue`), and durable answers that wait for a refreshed view hold
// back later ones (`held_back`). So callers never see two events of one session
// out of order.

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/past.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

bool is_gone(const result<session>& seen) {
  return !seen && seen.error().code() == errc::not_found;
}

bool is_refused(const append& letter) {
  const auto* const creation = as<create>(letter);
  return creation != nullptr ? !creation->created : !letter.outcome;
}

} // namespace

// -- writing ------------------------------------------------------------------

live_owners session_actor::owners(bool user, bool app) const {
  if (!stored_)
    return {};
  return {live(),
          user ? parent().live() : nullptr,
          app ? parent().app().live() : nullptr};
}

store_change session_actor::change_of(const append& decided,
                                      std::uint64_t number) const {
  store_change change;
  change.owner = live()->name;
  change.session_revision = number;
  if (is_one_of<create>(decided)) {
    change.kind = change_kind::create;
    change.event = decided.event;
  } else {
    change.event = *decided.outcome;
  }
  if (decided.touches(scope::user))
    change.user_revision = decided.user_revision;
  if (decided.touches(scope::app))
    change.app_revision = decided.app_revision;
  return change;
}

// Pushes the batch to the store's queue, or fills the place that was reserved
// where its climb was decided.
void session_actor::send_to_store(std::vector<store_change> changes) {
  auto own = stored_->reserved != nullptr ? nullptr
                                          : std::make_unique<struct commit>();
  auto& decided = own ? *own : *std::exchange(stored_->reserved, nullptr);
  if (own && batch_.empty())
    return;
  bool user = false;
  bool app = false;
  bool creates = false;
  for (auto& each : batch_.letters()) {
    creates = creates || is_one_of<create>(*each);
    user = user || reaches(*each, scope::user);
    app = app || reaches(*each, scope::app);
    decided.refuses = decided.refuses || is_refused(*each);
    decided.letters.push_back(std::move(each));
  }
  batch_.clear();
  decided.from = live();
  decided.owners = owners(user, app);
  decided.changes = std::move(changes);
  // The view shows versions of the owners above; their generations tell how old
  // these are.
  const bool shows = runs_ && runs_->has_active();
  if (shows)
    decided.view = make_view();
  if (shows || creates) {
    decided.seen_user = parent().live();
    decided.seen_app = parent().app().live();
    decided.view.user_generation = seen_user_.generation;
    decided.view.app_generation = seen_app_.generation;
  }
  ++stored_->commits;
  forget_old_events();
  if (!own)
    return shared().store->fill(decided);
  decided.filled = true;
  shared().store->push(std::move(own));
}

// Refuses a run on a session that does not exist. Another process may have
// created the session meanwhile. The refusal therefore passes the queue like
// every decision, so that later letters do not overtake the run if it is
// decided again.
void session_actor::refuse_behind_others(std::unique_ptr<start_run> wanted) {
  auto decided = std::make_unique<struct commit>();
  decided->from = live();
  decided->owners = owners(false, false);
  decided->refuses = true;
  decided->filled = true;
  decided->letters.push_back(std::move(wanted));
  ++stored_->commits;
  shared().store->push(std::move(decided));
}

void session_actor::receive(std::unique_ptr<struct commit> answered) {
  using verdict = actors::commit::verdict;
  --stored_->commits;
  if (answered->outcome == verdict::durable && answered->view_is_stale) {
    letter_list rest;
    while (!answered->letters.empty()) {
      auto next = take_as<append>(answered->letters.pop_front());
      if (answered->refuses_again && is_refused(*next))
        decide_again(std::move(next));
      else
        rest.push_back(std::move(next));
    }
    return reply_after_refresh(std::move(rest));
  }
  if (answered->outcome == verdict::durable)
    answered->view.publish();
  while (!answered->letters.empty())
    dispatch<append, create, remove, start_run>(
      answered->letters.pop_front(),
      [&](auto decided) { reply_to(std::move(decided), *answered); });
}

void session_actor::reply_to(std::unique_ptr<append> decided,
                             const struct commit& answered) {
  using verdict = actors::commit::verdict;
  if (answered.outcome == verdict::again
      || (answered.refuses_again && is_refused(*decided)))
    return decide_again(std::move(decided));
  if (answered.outcome == verdict::failed)
    decided->refuse(answered.why);
  reply_in_order(std::move(decided));
}

void session_actor::reply_to(std::unique_ptr<remove> removal,
                             const struct commit& answered) {
  stored_->removing = false;
  switch (answered.outcome) {
  case commit::verdict::again:
    return stored_->again.push_back(std::move(removal));
  case commit::verdict::durable:
    return finish_remove(std::move(removal));
  case commit::verdict::failed:
    removal->outcome = answered.why;
    parent().tell(std::move(removal));
    if (!stored_->fetching)
      resume_waiting(std::exchange(stored_->waiting, letter_list()));
  }
}

void session_actor::reply_to(std::unique_ptr<start_run> refused,
                             const struct commit& answered) {
  if (answered.refuses_again)
    return stored_->again.push_back(std::move(refused));
  refused->fail(answered.outcome == commit::verdict::failed
                  ? answered.why
                  : unknown_session(key()));
}

// Puts letters that are decided again before all letters that came since.
void session_actor::requeue() {
  if (stored_->again.empty())
    return;
  auto since = std::exchange(queue_, letter_list());
  for (auto again = std::exchange(stored_->again, letter_list());
       !again.empty();) {
    auto next = again.pop_front();
    if (is_one_of<start_run>(*next)) {
      renew(*next);
      handle(std::move(next));
    } else {
      queue_.push_back(std::move(next));
    }
  }
  while (!since.empty())
    queue_.push_back(since.pop_front());
}

// Retries that joined the letter are judged on their own again: each has its
// own expected revision.
void session_actor::decide_again(std::unique_ptr<append> decided) {
  auto followers = std::exchange(decided->followers, letter_list());
  reset_all(*decided);
  stored_->again.push_back(std::move(decided));
  while (!followers.empty())
    decide_again(take_as<append>(followers.pop_front()));
}

// The view of these runs, or of the creator of the session, showed stale state
// of user or app. The answers wait until a `get` has brought the current state.
void session_actor::reply_after_refresh(letter_list answered) {
  letter_list held;
  while (!answered.empty())
    held.push_back(hold_back(answered.pop_front()));
  const auto number = stored_->held_back.hold(std::move(held));
  auto wanted = std::make_unique<get>();
  wanted->key = key();
  wanted->options.num_recent_events = 0;
  wanted->refresh = true;
  wanted->done
    = [self = ref(*this), kept = share(), number](result<session> seen) {
        auto refreshed = std::make_unique<view_refresh>();
        refreshed->number = number;
        refreshed->seen = std::move(seen);
        self->tell(std::move(refreshed));
      };
  ask_app(std::move(wanted));
}

// The creation counts as over, so look-ups no longer wait for it. The `get` of
// `reply_after_refresh` would otherwise wait for this creation, and this
// creation for the `get`.
letter_ptr session_actor::hold_back(letter_ptr answered) {
  if (is_one_of<create>(*answered))
    --creations_;
  return answered;
}

void session_actor::receive(std::unique_ptr<view_refresh> refreshed) {
  stored_->held_back.note(refreshed->number, refreshed->seen);
  reply_held();
}

void session_actor::reply_held() {
  while (auto ready = stored_->held_back.take())
    while (!ready->letters.empty())
      reply_held(take_as<append>(ready->letters.pop_front()), ready->seen);
}

void session_actor::reply_held(std::unique_ptr<append> answered,
                               const std::optional<result<session>>& seen) {
  auto* const creation = as<create>(*answered);
  if (creation != nullptr && seen && *seen && creation->created)
    creation->created = **seen;
  // A run, or a creator, must not continue without the current state. If the
  // session is gone, the run ends with `cancelled`.
  if (seen && !*seen && (creation != nullptr || answered->reply_to))
    answered->refuse(answered->reply_to
                         && (stored_->goes_with_user || is_gone(*seen))
                       ? deleted_session(key())
                       : seen->error());
  if (creation != nullptr)
    ++creations_; // `reply` counts it down.
  reply(std::move(answered));
}

// Called at the end. All these answers are durable, but the session is gone, or
// will be unless the store fails to remove its user.
void session_actor::reply_all_held() {
  stored_->held_back.give_up(
    stored_->goes_with_user
      ? error(errc::store_failed,
              fmt::format("session {} cannot be read while its user is being "
                          "removed",
                          to_string(key())))
      : closed_reason());
  reply_held();
}

// Queues the answer after those that wait for a refreshed view, so a run gets
// its events in order.
void session_actor::reply_in_order(std::unique_ptr<append> answered) {
  if (stored_->held_back.empty())
    reply(std::move(answered));
  else
    stored_->held_back.hold_behind(hold_back(std::move(answered)));
}

// -- loading ------------------------------------------------------------------

bool session_actor::can_load() const noexcept {
  return !climbing_ && stored_->commits == 0;
}

load_options session_actor::what_to_load() const {
  return {.events_max = std::max<std::size_t>(shared().options.events_kept,
                                              runs_ ? runs_->newest_max() : 0),
          .ids_max = shared().options.remembered_ids};
}

void session_actor::install(load& loaded) {
  auto& found = *loaded.session;
  const auto before = revision();
  const auto last = events_.has(before) ? events_.at(before) : event_ptr();
  const bool existed = std::exchange(created_, found.has_value());
  state_ = scope_state(found ? std::move(found->scope.keys) : state_map());
  last_update_time_ = found ? found->last_update_time : timestamp();
  events_ = found
              ? event_window(found->scope.revision, std::move(found->events))
              : event_window();
  install_ids(found ? found->id_hashes : std::vector<std::uint32_t>());
  if (runs_)
    runs_->reload(revision());
  if (created_ && !existed)
    appear();
  if (!created_ && existed) {
    shared().directory->remove(*this);
    cancel_runs();
  }
  if (existed && !continues(before, last))
    search_again();
  if (!stored_->fetching)
    resume_waiting(std::exchange(stored_->waiting, letter_list()));
  // Before the parked letters, which came later.
  if (!is_waiting())
    requeue();
}

// Whether the loaded session is the one whose event number `before` was
// `newest`, with or without more events. If not, it was removed and created
// again, or has lost events.
bool session_actor::continues(std::uint64_t before,
                              const event_ptr& newest) const {
  if (!created_ || revision() < before)
    return false;
  return before == 0
         || (newest && events_.has(before)
             && events_.at(before)->id == newest->id);
}

void session_actor::refuse_waiting(const error& why) {
  for (auto* letters : {&stored_->again, &queue_, &early_, &stored_->waiting}) {
    auto refused = std::exchange(*letters, letter_list());
    while (!refused.empty())
      refuse(refused.pop_front(), why);
  }
}

void session_actor::refuse(letter_ptr received, const error& why) {
  if (try_dispatch<remove>(
        received, [&](auto removal) { refuse(std::move(removal), why); }))
    return;
  if (is_one_of<create>(*received) && creations_ > 0)
    --creations_;
  received->fail(why);
}

// The user waits for this answer.
void session_actor::refuse(std::unique_ptr<remove> removal, const error& why) {
  if (removal->for_user_removal)
    return finish_remove(std::move(removal));
  removal->outcome = why;
  parent().tell(std::move(removal));
}

// -- older events -------------------------------------------------------------

bool session_actor::reach(std::uint64_t first) {
  if (first > events_.before())
    return true;
  if (!stored_->fetching) {
    auto wanted = std::make_unique<read_events>();
    wanted->first = first;
    fetch(std::move(wanted));
  }
  return false;
}

// Reads the events before those in memory, or searches them.
void session_actor::fetch(std::unique_ptr<read_events> wanted) {
  stored_->fetching = true;
  wanted->cuts = stored_->cuts;
  wanted->owner = live();
  wanted->last = events_.before();
  shared().store->push(std::move(wanted));
}

// Whether the session may have changed elsewhere, or is being removed. A failed
// read proves nothing then; its letters wait for the next load.
bool session_actor::is_changing() const noexcept {
  return is_waiting() || stored_->removing;
}

void session_actor::receive(std::unique_ptr<read_events> answered) {
  stored_->fetching = false;
  if (answered->search)
    return receive_search(std::move(answered));
  auto waiting = std::exchange(stored_->waiting, letter_list());
  auto& events = answered->events;
  // A load in between may have brought another session: ask again.
  const bool fits
    = answered->cuts == stored_->cuts && answered->last == events_.before();
  if (events && fits && events->size() != answered->last - answered->first + 1)
    events = error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key()),
                               events->size(),
                               answered->first,
                               answered->last));
  if (!events && answered->cuts == stored_->cuts) {
    if (is_changing()) {
      stored_->waiting = std::move(waiting);
      return;
    }
    while (!waiting.empty())
      waiting.pop_front()->fail(events.error());
    return;
  }
  if (fits)
    events_.add_older(std::move(*events));
  resume_waiting(std::move(waiting));
}

// Handles letters with the newest versions of user and app. They pass
// `deliver`, since the session may have become stale meanwhile.
void session_actor::resume_waiting(letter_list waiting) {
  while (!waiting.empty()) {
    auto next = waiting.pop_front();
    renew(*next);
    owner_actor::deliver(std::move(next));
  }
}

void session_actor::note_parked(letter& parked) {
  if (const auto* const down = look_up_of(parked))
    see(down->user, down->app);
}

// The letter carries the versions of the time when it arrived. The session must
// not go back to them.
void session_actor::renew(letter& parked) const {
  if (auto* const down = look_up_of(parked)) {
    down->user = seen_user_;
    down->app = seen_app_;
  }
}

void session_actor::forget_old_events() {
  if (stored_->fetching || !stored_->waiting.empty())
    return;
  const auto oldest = std::min(oldest_to_load(), revision() + 1);
  events_.keep_newest(std::max<std::size_t>(shared().options.events_kept,
                                            revision() + 1 - oldest));
}

// -- leaving memory -----------------------------------------------------------

bool session_actor::is_idle() const noexcept {
  return queue_.empty() && early_.empty() && batch_.empty() && !climbing_
         && !runs_ && !is_loading() && stored_->commits == 0
         && stored_->again.empty() && stored_->waiting.empty()
         && stored_->held_back.empty() && !stored_->fetching
         && !stored_->removing;
}

void session_actor::ask_to_retire() {
  if (is_idle() && !std::exchange(stored_->asked_to_retire, true))
    parent().tell(std::make_unique<retire>(retire::step::asked, id_));
}

void session_actor::receive(std::unique_ptr<retire> wished) {
  switch (wished->at) {
  case retire::step::suggested:
    return ask_to_retire();
  case retire::step::granted:
    stored_->asked_to_retire = false;
    if (!is_idle()) {
      parent().tell(std::make_unique<retire>(retire::step::stayed, id_));
      return;
    }
    // Out of the directory first: new appends then go to the app, which leads
    // them to the successor.
    shared().directory->remove(*this);
    stored_->successor = ref(parent().app());
    return quit();
  case retire::step::kept:
    stored_->asked_to_retire = false;
    return;
  default:
    assert(false && "a step that is not a session's");
  }
}

// Sends a letter back to the app. The app holds it until the removal of the
// user is durable or has failed.
void session_actor::send_on(letter_ptr sent) {
  if (is_one_of<append>(*sent))
    turn_away(std::move(sent));
  else if (is_one_of<get, start_run, forward>(*sent))
    stored_->successor->tell(std::move(sent));
  else
    owner_actor::turn_away(std::move(sent));
}

void session_actor::leave_behind(letter_ptr sent) {
  if (stored_ && stored_->goes_with_user)
    send_on(std::move(sent));
  else if (is_for_successor(*sent))
    stored_->left.push_back(std::move(sent));
  else
    sent->fail(refusal_of(*sent));
}

bool session_actor::is_for_successor(const letter& sent) const noexcept {
  if (!stored_ || !stored_->successor)
    return false;
  // A run ends with the session that it began in.
  if (const auto* const said = as<append>(sent))
    return !stored_->is_removed || !said->reply_to;
  return stored_->is_removed
         && is_one_of<create, get, forward, start_run>(sent);
}

void session_actor::leave_all_behind() {
  for (auto* letters : {&stored_->again, &queue_, &early_, &stored_->waiting})
    while (!letters->empty())
      leave_behind(letters->pop_front());
  if (runs_)
    for (auto waiting = runs_->take_waiting(); !waiting.empty();)
      leave_behind(waiting.pop_front());
}

void session_actor::part() {
  if (!stored_ || !stored_->successor || stored_->goes_with_user)
    return;
  if (auto removal = std::move(stored_->removal)) {
    removal->left = std::exchange(stored_->left, letter_list());
    return parent().tell(std::move(removal));
  }
  auto gone = std::make_unique<retire>(retire::step::gone, id_);
  gone->left = std::exchange(stored_->left, letter_list());
  parent().tell(std::move(gone));
}

// Forwards appends that were sent to this actor after it had left memory to the
// actor that takes its place.
void session_actor::turn_away(letter_ptr sent) {
  const auto* const said = as<append>(*sent);
  if (said == nullptr || !is_for_successor(*sent))
    return sent->fail(refusal_of(*sent));
  // Appends of runs are cancelled with the user.
  if (stored_->goes_with_user && said->reply_to)
    return sent->fail(deleted_session(key()));
  auto passed = std::make_unique<forward>(*shared().directory);
  passed->key = key();
  shared().directory->start_forward(passed->key);
  passed->held = std::move(sent);
  stored_->successor->tell(std::move(passed));
}

} // namespace troupe::actors
