// The end of a session's actor: its removal, leaving memory over a store, and
// becoming idle without one.
//
// Invariant: no letter is lost. Each letter that the actor does not handle is
// refused, or handed to the actor that takes its place, in order.

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"

namespace troupe::actors {

// -- removal ------------------------------------------------------------------

// Returns true if the session continues with the letters after the removal.
bool session_actor::start_remove() {
  auto removal = take_as<remove>(queue_.pop_front());
  if (!stored_) {
    finish_remove(std::move(removal));
    return false;
  }
  if (removal->for_user_removal) {
    // The user's own removal follows in the store. Here it is enough to wait
    // for commits under way.
    if (stored_->commits > 0) {
      queue_.push_front(std::move(removal));
      return false;
    }
    // The session's end is durable only with the user's removal. Later letters
    // therefore wait for that at the app.
    successor_ = ref(parent().app());
    stored_->goes_with_user = true;
    finish_remove(std::move(removal));
    return false;
  }
  if (!created_) {
    removal->outcome = false;
    removal->live = live();
    removal->generation = generation();
    parent().tell(std::move(removal));
    return true;
  }
  stored_->removing = true;
  ++stored_->commits;
  auto decided = std::make_unique<struct commit>();
  decided->from = live();
  decided->owners = owners(false, false);
  decided->filled = true;
  store_change change;
  change.kind = change_kind::remove;
  change.owner = live()->name;
  decided->changes.push_back(std::move(change));
  decided->letters.push_back(std::move(removal));
  shared().store->push(std::move(decided));
  return false;
}

void session_actor::finish_remove(std::unique_ptr<remove> removal) {
  shared().directory->remove(*this);
  listing_.reset();
  quit();
  cancel_runs();
  removal->outcome = created_;
  removal->gone = true;
  if (!stored_ || removal->for_user_removal)
    return parent().tell(std::move(removal));
  successor_ = ref(parent().app());
  stored_->removal = std::move(removal);
  stored_->is_removed = true;
}

void session_actor::release() {
  if (stored_)
    reply_all_held();
  if (at_store().goes_with_user || at_store().is_removed)
    leave_all_behind();
  const auto fail_all = [this](letter_list&& letters) {
    while (!letters.empty()) {
      const auto next = letters.pop_front();
      next->fail(refusal_of(*next));
    }
  };
  fail_all(std::move(queue_));
  fail_all(std::move(early_));
  if (stored_) {
    fail_all(std::move(stored_->again));
    fail_all(std::move(stored_->waiting));
  }
  if (runs_)
    fail_all(runs_->take_waiting());
  runs_.reset();
}

// -- leaving memory -----------------------------------------------------------

bool session_actor::is_idle() const noexcept {
  return queue_.empty() && early_.empty() && batch_.empty() && !climbing_
         && !runs_ && !is_loading() && at_store().commits == 0
         && at_store().again.empty() && at_store().waiting.empty()
         && at_store().held_back.empty() && !at_store().fetching
         && !at_store().removing;
}

bool session_actor::is_unknown_elsewhere() const noexcept {
  // Held by the directory, by the user, by the scheduler during this job, and
  // by the store's queue if the session was loaded.
  const std::size_t own = live() && live()->actor ? 4 : 3;
  return ctrl()->strong_refs == own && !has_letters();
}

void session_actor::ask_to_retire() {
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

// Sends a letter back to the app. The app holds it until the removal of the
// user is durable or has failed.
void session_actor::send_on(letter_ptr sent) {
  if (is_one_of<append>(*sent))
    turn_away(std::move(sent));
  else if (is_one_of<get, start_run, forward>(*sent))
    successor_->tell(std::move(sent));
  else
    owner_actor::turn_away(std::move(sent));
}

void session_actor::leave_behind(letter_ptr sent) {
  if (at_store().goes_with_user)
    send_on(std::move(sent));
  else if (is_for_successor(*sent))
    left_.push_back(std::move(sent));
  else
    sent->fail(refusal_of(*sent));
}

bool session_actor::is_for_successor(const letter& sent) const noexcept {
  if (!successor_)
    return false;
  // A run ends with the session that it began in.
  if (const auto* const said = as<append>(sent))
    return !at_store().is_removed || !said->reply_to;
  return at_store().is_removed
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
  if (!successor_ || at_store().goes_with_user)
    return;
  if (stored_ && stored_->removal) {
    auto removal = std::move(stored_->removal);
    removal->left = std::exchange(left_, letter_list());
    return parent().tell(std::move(removal));
  }
  auto gone = std::make_unique<retire>(retire::step::gone, id_);
  gone->left = std::exchange(left_, letter_list());
  if (!stored_ && created_)
    gone->idle = become_idle();
  parent().tell(std::move(gone));
}

std::unique_ptr<idle_session> session_actor::become_idle() {
  auto left = std::make_unique<idle_session>();
  left->keys = state_.keys();
  left->events = std::move(events_);
  left->ids = std::move(ids_);
  left->last_update_time = last_update_time_;
  left->listed = std::move(listing_);
  return left;
}

// Forwards appends that were sent to this actor after it had left memory to the
// actor that takes its place.
void session_actor::turn_away(letter_ptr sent) {
  const auto* const said = as<append>(*sent);
  if (said == nullptr || !is_for_successor(*sent))
    return sent->fail(refusal_of(*sent));
  // Appends of runs are cancelled with the user.
  if (at_store().goes_with_user && said->reply_to)
    return sent->fail(deleted_session(key()));
  auto passed = std::make_unique<forward>(*shared().directory);
  passed->key = key();
  shared().directory->start_forward(passed->key);
  passed->held = std::move(sent);
  successor_->tell(std::move(passed));
}

} // namespace troupe::actors
