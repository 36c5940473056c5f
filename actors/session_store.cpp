// What a session does over a store: what it decides goes there and comes back
// durable, or to be decided again; it is loaded on demand, keeps only its
// newest events, and leaves memory when it is idle.

#include "troupe/actors/session_actor.hpp"
#include "troupe/actors/session_past.hpp"
#include "troupe/actors/store_queue.hpp"
#include "troupe/actors/user_actor.hpp"
#include "troupe/core/mechanism.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

bool is_gone(const result<session>& seen) {
  return !seen && seen.error().code() == errc::not_found;
}

bool is_refused(const append& letter) {
  return letter.kind == letter_kind::create
           ? !static_cast<const create&>(letter).created
           : !letter.outcome;
}

// The roots that a letter brings down, those of `see`; null if it brings none.
struct brought_roots {
  root* user = nullptr;
  root* app = nullptr;
};

template <class Letter>
brought_roots roots_in(letter& sent) {
  auto& brings = static_cast<Letter&>(sent);
  return {&brings.user, &brings.app};
}

brought_roots roots_of(letter& sent) {
  switch (sent.kind) {
  case letter_kind::create:
    return roots_in<create>(sent);
  case letter_kind::get:
    return roots_in<get>(sent);
  case letter_kind::forward:
    return roots_in<forward>(sent);
  case letter_kind::start_run:
    return roots_in<start_run>(sent);
  default:
    return {};
  }
}

} // namespace

// -- writing
// -------------------------------------------------------------------

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
  if (decided.kind == letter_kind::create) {
    change.kind = change_kind::create;
    change.said = decided.said;
  } else {
    change.said = *decided.outcome;
  }
  if (decided.touches(scope::user))
    change.user_revision = decided.user_revision;
  if (decided.touches(scope::app))
    change.app_revision = decided.app_revision;
  return change;
}

// The batch enters the store's queue, or fills the place that was kept for it
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
  for (auto& each : batch_) {
    creates = creates || each->kind == letter_kind::create;
    user = user || reaches(*each, scope::user);
    app = app || reaches(*each, scope::app);
    decided.refuses = decided.refuses || is_refused(*each);
    if (is_broken(mechanism::answers_when_durable))
      reply(std::move(each));
    else
      decided.letters.push_back(std::move(each));
  }
  batch_.clear();
  decided.from = live();
  decided.owners = owners(user, app);
  decided.changes = std::move(changes);
  // What is shown of the owners above is as old as their roots here.
  const bool shows = desk_ && !desk_->active.empty();
  if (shows)
    decided.view = look();
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

// Another program may have created the session since this one has looked. Like
// any refusal it takes its place among what is decided, so that nothing that
// has come for the session overtakes it when it is decided again.
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
    return reply_behind_fresh_view(std::move(rest));
  }
  if (answered->outcome == verdict::durable)
    answered->view.publish();
  while (!answered->letters.empty()) {
    auto next = answered->letters.pop_front();
    if (next->kind == letter_kind::remove) {
      reply_to_removal(take_as<remove>(std::move(next)), *answered);
      continue;
    }
    if (next->kind == letter_kind::start_run) {
      reply_to_start(take_as<start_run>(std::move(next)), *answered);
      continue;
    }
    auto letter = take_as<append>(std::move(next));
    if (answered->outcome == verdict::again
        || (answered->refuses_again && is_refused(*letter))) {
      decide_again(std::move(letter));
      continue;
    }
    if (answered->outcome == verdict::failed)
      letter->refuse(answered->why);
    reply_in_order(std::move(letter));
  }
}

void session_actor::reply_to_removal(std::unique_ptr<remove> removal,
                                     const struct commit& answered) {
  stored_->removing = false;
  switch (answered.outcome) {
  case commit::verdict::again:
    return stored_->again.push_back(std::move(removal));
  case commit::verdict::durable:
    return finish_remove(std::move(removal));
  case commit::verdict::failed:
    removal->outcome = answered.why;
    return parent().tell(std::move(removal));
  }
}

void session_actor::reply_to_start(std::unique_ptr<start_run> refused,
                                   const struct commit& answered) {
  if (answered.refuses_again)
    return stored_->again.push_back(std::move(refused));
  refused->fail(answered.outcome == commit::verdict::failed
                  ? answered.why
                  : unknown_session(key()));
}

// In the order in which it was decided, before what has come since.
void session_actor::take_up_again() {
  if (stored_->again.empty())
    return;
  auto since = std::exchange(queue_, letter_list());
  for (auto again = std::exchange(stored_->again, letter_list());
       !again.empty();) {
    auto next = again.pop_front();
    if (next->kind == letter_kind::start_run) {
      renew(*next);
      handle(std::move(next));
    } else {
      queue_.push_back(std::move(next));
    }
  }
  while (!since.empty())
    queue_.push_back(since.pop_front());
}

// Its retries stand on their own again: they may have been told otherwise which
// revision to expect.
void session_actor::decide_again(std::unique_ptr<append> decided) {
  auto followers = std::exchange(decided->followers, letter_list());
  reset_all(*decided);
  stored_->again.push_back(std::move(decided));
  while (!followers.empty())
    decide_again(take_as<append>(followers.pop_front()));
}

// What the runs, or who creates the session, saw of the user or the app is not
// what is stored: they go on once they see what is.
void session_actor::reply_behind_fresh_view(letter_list answered) {
  auto& held = stored_->held_back.emplace_back();
  while (!answered.empty())
    hold_back(held.letters, answered.pop_front());
  held.look = ++stored_->looks;
  auto wanted = std::make_unique<get>();
  wanted->key = key();
  wanted->options.num_recent_events = 0;
  wanted->refresh = true;
  wanted->done = [self = caf::actor_cast<caf::strong_actor_ptr>(this),
                  kept = share(),
                  number = held.look](result<session> seen) {
    auto looked = std::make_unique<fresh>();
    looked->number = number;
    looked->seen = std::move(seen);
    as_inbox(self).tell(std::move(looked));
  };
  ask_app(std::move(wanted));
}

// A creation is over: look-ups must not wait for it, least of all the one that
// it waits for itself.
void session_actor::hold_back(letter_list& held, letter_ptr answered) {
  if (answered->kind == letter_kind::create)
    --creations_;
  held.push_back(std::move(answered));
}

// A later look shows as much to those that wait for an earlier one.
void session_actor::receive(std::unique_ptr<fresh> looked) {
  for (auto& each : stored_->held_back)
    if (each.look != 0 && each.look <= looked->number && !each.seen)
      each.seen = looked->seen;
  let_through();
}

void session_actor::let_through() {
  auto& all = stored_->held_back;
  while (!all.empty() && (all.front().look == 0 || all.front().seen)) {
    auto next = std::move(all.front());
    all.pop_front();
    while (!next.letters.empty()) {
      auto letter = take_as<append>(next.letters.pop_front());
      const bool creates = letter->kind == letter_kind::create;
      if (next.seen && *next.seen && creates) {
        auto& created = static_cast<create&>(*letter).created;
        if (created)
          created = **next.seen;
      }
      // Who goes on with what it sees must not go on without. A run whose
      // session is gone by now ends for that.
      if (next.seen && !*next.seen && (creates || letter->reply_to))
        letter->refuse(letter->reply_to
                           && (stored_->goes_with_user || is_gone(*next.seen))
                         ? deleted_session(key())
                         : next.seen->error());
      if (creates)
        ++creations_; // `reply` takes it away.
      reply(std::move(letter));
    }
  }
}

// All of it is durable, but the session is gone; or will be, unless the store
// fails.
void session_actor::let_all_through() {
  const auto why
    = stored_->goes_with_user
        ? error(errc::store_failed,
                fmt::format("nobody can see session {} while its user is being "
                            "removed",
                            to_string(key())))
        : closed_reason();
  for (auto& each : stored_->held_back)
    if (each.look != 0 && !each.seen)
      each.seen = why;
  let_through();
}

// Behind what waits for a fresh view, so that the events of a run are told in
// their order.
void session_actor::reply_in_order(std::unique_ptr<append> answered) {
  auto& all = stored_->held_back;
  if (all.empty())
    return reply(std::move(answered));
  if (all.back().look != 0)
    all.emplace_back();
  hold_back(all.back().letters, std::move(answered));
}

// -- loading
// -------------------------------------------------------------------

bool session_actor::can_load() const noexcept {
  return !climbing_ && stored_->commits == 0;
}

load_options session_actor::what_to_load() const {
  return {.events_max = std::max<std::size_t>(share()->options.events_kept,
                                              newest_to_load()),
          .ids_max = share()->options.remembered_ids};
}

void session_actor::install(load& loaded) {
  auto& found = *loaded.session;
  const auto before = revision();
  const bool existed = std::exchange(created_, found.has_value());
  state_ = scope_state(found ? std::move(found->scope.keys) : state_map());
  last_update_time_ = found ? found->last_update_time : timestamp();
  log_ = event_log();
  first_ = 0;
  if (found) {
    const auto newest = found->scope.revision;
    first_ = newest - found->events.size();
    for (auto& each : found->events)
      log_.push_back(std::move(each));
  }
  install_ids(found ? found->id_hashes : std::vector<std::uint32_t>());
  keep_for_active();
  if (created_ && !existed)
    appear();
  if (!created_ && existed) {
    shared().directory.remove(*this);
    cancel_runs();
  }
  if (created_ && revision() < before)
    search_again();
  if (!stored_->fetching)
    resume_waiting(std::exchange(stored_->waiting, letter_list()));
  // What has waited for this load came later.
  if (!is_waiting())
    take_up_again();
}

void session_actor::refuse_waiting(const error& why) {
  for (auto* letters : {&stored_->again, &queue_, &early_, &stored_->waiting}) {
    auto refused = std::exchange(*letters, letter_list());
    while (!refused.empty())
      refuse(refused.pop_front(), why);
  }
}

void session_actor::refuse(letter_ptr received, const error& why) {
  switch (received->kind) {
  case letter_kind::create:
    if (creations_ > 0)
      --creations_;
    break;
  case letter_kind::remove: {
    // Its parent waits for it.
    auto removal = take_as<remove>(std::move(received));
    removal->done_by_session = true;
    if (removal->for_user_removal)
      return finish_remove(std::move(removal));
    removal->outcome = why;
    return parent().tell(std::move(removal));
  }
  default:
    break;
  }
  received->fail(why);
}

// -- older events
// --------------------------------------------------------------

bool session_actor::reach(std::uint64_t first) {
  if (first > first_)
    return true;
  if (!stored_->fetching) {
    auto wanted = std::make_unique<read_events>();
    wanted->first = first;
    fetch(std::move(wanted));
  }
  return false;
}

// The events before those in memory, or a search in them.
void session_actor::fetch(std::unique_ptr<read_events> wanted) {
  stored_->fetching = true;
  wanted->owner = live();
  wanted->last = first_;
  shared().store->push(std::move(wanted));
}

void session_actor::receive(std::unique_ptr<read_events> answered) {
  stored_->fetching = false;
  if (answered->search)
    return receive_search(std::move(answered));
  auto waiting = std::exchange(stored_->waiting, letter_list());
  auto& events = answered->events;
  // A load in between has changed what is in memory: it is asked for again.
  const bool fits = answered->last == first_;
  if (events && fits && events->size() != answered->last - answered->first + 1)
    events = error(errc::corrupt,
                   fmt::format("session {} has {} of its events {} to {}",
                               to_string(key()),
                               events->size(),
                               answered->first,
                               answered->last));
  if (!events) {
    // Unless the session has changed elsewhere: then they wait for what it is.
    if (is_waiting()) {
      stored_->waiting = std::move(waiting);
      return;
    }
    while (!waiting.empty())
      waiting.pop_front()->fail(events.error());
    return;
  }
  if (fits) {
    event_log whole;
    for (auto& each : *events)
      whole.push_back(std::move(each));
    for (std::size_t index = 0; index < log_.size(); ++index)
      whole.push_back(log_[index]);
    log_ = std::move(whole);
    first_ = answered->first - 1;
  }
  resume_waiting(std::move(waiting));
}

// With what has come down from the user and the app since. Through the front
// door: the session may have gone stale meanwhile.
void session_actor::resume_waiting(letter_list waiting) {
  while (!waiting.empty()) {
    auto next = waiting.pop_front();
    renew(*next);
    owner_actor::deliver(std::move(next));
  }
}

void session_actor::note_parked(letter& parked) {
  if (const auto brought = roots_of(parked); brought.user != nullptr)
    see(*brought.user, *brought.app);
}

// What waited came with the roots of that time, and what is seen never goes
// back to them.
void session_actor::renew(letter& parked) const {
  if (const auto brought = roots_of(parked); brought.user != nullptr) {
    *brought.user = seen_user_;
    *brought.app = seen_app_;
  }
}

void session_actor::forget_old_events() {
  if (stored_->fetching || !stored_->waiting.empty())
    return;
  const auto oldest = std::min(oldest_read(), revision() + 1);
  first_ += log_.keep_newest(std::max<std::size_t>(share()->options.events_kept,
                                                   revision() + 1 - oldest));
}

// -- leaving memory
// ------------------------------------------------------------

bool session_actor::is_idle() const noexcept {
  return queue_.empty() && early_.empty() && batch_.empty() && !climbing_
         && !desk_ && !is_loading() && stored_->commits == 0
         && stored_->again.empty() && stored_->waiting.empty()
         && stored_->held_back.empty() && !stored_->fetching
         && !stored_->removing;
}

void session_actor::receive(const retire& wished) {
  switch (wished.at) {
  case retire::step::suggested:
    if (is_idle() && !std::exchange(stored_->asked_to_retire, true))
      parent().tell(std::make_unique<retire>(retire::step::asked, id_));
    return;
  case retire::step::granted:
    stored_->asked_to_retire = false;
    if (!is_idle()) {
      parent().tell(std::make_unique<retire>(retire::step::stayed, id_));
      return;
    }
    shared().directory.remove(*this);
    stored_->successor
      = caf::actor_cast<caf::strong_actor_ptr>(&parent().app());
    return quit();
  case retire::step::kept:
    stored_->asked_to_retire = false;
    return;
  default:
    assert(false && "a step that is not a session's");
  }
}

// Back to the app, which keeps it until the user's removal is durable or has
// failed.
void session_actor::send_on(letter_ptr sent) {
  switch (sent->kind) {
  case letter_kind::append:
    return turn_away(std::move(sent));
  case letter_kind::get:
  case letter_kind::start_run:
  case letter_kind::forward:
    return as_inbox(stored_->successor).tell(std::move(sent));
  default:
    return owner_actor::turn_away(std::move(sent));
  }
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
  switch (sent.kind) {
  case letter_kind::append:
    // Runs end with the session that they began in.
    return !stored_->is_removed || !static_cast<const append&>(sent).reply_to;
  case letter_kind::create:
  case letter_kind::get:
  case letter_kind::forward:
  case letter_kind::start_run:
    return stored_->is_removed;
  default:
    return false;
  }
}

void session_actor::leave_all_behind() {
  for (auto* letters : {&stored_->again, &queue_, &early_, &stored_->waiting})
    while (!letters->empty())
      leave_behind(letters->pop_front());
  if (desk_)
    while (!desk_->waiting.empty())
      leave_behind(desk_->waiting.pop_front());
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

// What was told to a session that has left goes to the one that takes its
// place.
void session_actor::turn_away(letter_ptr sent) {
  if (!is_for_successor(*sent) || sent->kind != letter_kind::append)
    return sent->fail(refusal_of(*sent));
  // Those of runs are cancelled with them.
  if (stored_->goes_with_user && static_cast<append&>(*sent).reply_to)
    return sent->fail(deleted_session(key()));
  auto passed = std::make_unique<forward>(shared().directory);
  passed->key = key();
  shared().directory.start_forward(passed->key);
  passed->held = std::move(sent);
  as_inbox(stored_->successor).tell(std::move(passed));
}

} // namespace troupe::actors
