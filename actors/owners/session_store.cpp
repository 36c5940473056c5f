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

// The changes that the accepted events of the batch make. They are the newest
// events of the session.
std::vector<store_change> session_actor::changes() const {
  std::vector<store_change> all;
  all.reserve(batch_.size());
  auto number = revision() - (batch_.size() - (batch_.creates() ? 1 : 0));
  for (const auto* next : batch_.accepted()) {
    if (!is_one_of<create>(*next))
      ++number;
    all.push_back(change_of(*next, number));
  }
  return all;
}

// Pushes the batch to the store's queue, or fills the place that was reserved
// where its climb was decided.
void session_actor::send_to_store() {
  auto decisions = changes();
  batch_.settle();
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
  decided.changes = std::move(decisions);
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

// Handles look-ups that waited for a creation, after the letters that are
// decided again.
void session_actor::handle_early() {
  if (stored_ && !is_waiting())
    requeue();
  if (is_waiting() || awaits_creation())
    return;
  for (auto early = std::exchange(early_, letter_list()); !early.empty();) {
    renew(early.front());
    handle(early.pop_front());
  }
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

// Returns true if the loaded session is the one whose event number `before` was
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

} // namespace troupe::actors
