// Invariants of a user: at most one `user_climb` is under way to the app.
// Climbs are judged in the order of arrival, and each is answered in that
// order. Climbs that end here are committed at once, but only while none is on
// its way to the app: otherwise they would overtake it. Without a store, a user
// that exists stays in memory, because its state is nowhere else. The user
// checks again that it may leave when the app lets it go: letters that came
// after its request may have changed its state.

#include "troupe/actors/owners/user.hpp"

#include "troupe/actors/caf_interface.hpp"
#include "troupe/actors/engine/spawn.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/durable_session.hpp"
#include "troupe/actors/owners/memory_session.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/sessions/list_gather.hpp"

#include <algorithm>
#include <optional>

namespace troupe::actors {

namespace {

// Returns true if the app may refuse an event of the climb: the last one, or,
// if a session is created with its past, any of them.
bool may_be_refused(const climb& up) {
  const auto may_be
    = [](const append* each) { return each->may_be_refused_by(scope::app); };
  return up.all_or_nothing ? std::ranges::any_of(up.events, may_be)
                           : !up.events.empty() && may_be(up.events.back());
}

} // namespace

user_actor::user_actor(caf::actor_config& config,
                       std::shared_ptr<setup> shared,
                       app_actor& app,
                       std::shared_ptr<const user_names> names)
  : parent_actor(
    config, std::move(shared), owner_name{names->app, names->user}),
    kept_app_(app),
    app_(app),
    names_(std::move(names)),
    exists_(live() != nullptr) {}

void user_actor::ask_app(letter_ptr wanted) {
  app_.tell(std::move(wanted));
}

owner_actor& user_actor::app() const noexcept {
  return app_;
}

owner_actor& user_actor::top() noexcept {
  return app_;
}

caf::behavior user_actor::make_behavior() {
  return closed_interface();
}

error user_actor::closed_reason() const {
  return closed();
}

bool user_actor::is_for_now(const letter& received) const noexcept {
  if (const auto* const removed = as<remove>(received))
    return removed->done_by_child;
  return is_one_of<user_climb, struct commit, retire, shut_down>(received);
}

void user_actor::handle(letter_ptr received) {
  dispatch_to_parent<climb, user_climb, struct commit>(
    std::move(received), [this](auto sent) { receive(std::move(sent)); });
}

void user_actor::receive(std::unique_ptr<climb> up) {
  queue_.push_back(std::move(up));
}

void user_actor::receive(std::unique_ptr<write_state> wanted) {
  queue_.push_back(std::move(wanted));
}

// -- loading ------------------------------------------------------------------

void user_actor::install(load& loaded) {
  exists_ = loaded.scope->has_value();
  parent_actor::install(loaded);
}

void user_actor::refuse_waiting(const error& why) {
  parent_actor::refuse_waiting(why);
  for (auto waiting = std::exchange(queue_, letter_list()); !waiting.empty();)
    refuse(waiting.pop_front(), why);
}

void user_actor::refuse(letter_ptr received, const error& why) {
  if (!try_dispatch<climb, remove_user>(
        received, [&](auto undone) { refuse(std::move(undone), why); }))
    parent_actor::refuse(std::move(received), why);
}

void user_actor::refuse(std::unique_ptr<climb> undone, const error& why) {
  undone->failed = why;
  send_down(std::move(undone));
}

// The app waits for this answer.
void user_actor::refuse(std::unique_ptr<remove_user> removal,
                        const error& why) {
  removal->outcome = why;
  app_.tell(std::move(removal));
}

// -- appending ----------------------------------------------------------------

void user_actor::judge(climb& next) {
  if (next.all_or_nothing)
    before_whole_ = state_;
  for (auto* const passing : next.events) {
    if (!passing->touches(scope::user))
      continue;
    auto judged = passing->judge(scope::user,
                                 state_,
                                 !next.all_or_nothing
                                   && passing->may_be_refused_by(scope::app),
                                 shared().options.limits);
    if (judged) {
      passing->user_revision = state_.judged_revision();
      continue;
    }
    next.last_refused = judged.error();
    if (next.all_or_nothing) {
      state_ = *std::exchange(before_whole_, std::nullopt);
      next.events.clear();
      break;
    }
    // An event that a wider owner may refuse is the last of its batch.
    assert(passing == next.events.back());
    next.events.pop_back();
    break;
  }
  next.touches_app
    = std::ranges::any_of(next.events, [](const append* passing) {
        return passing->touches(scope::app);
      });
}

void user_actor::finish_letters() {
  if (removal_ && !removing_)
    remove_sessions();
  if (!climbing_ && !is_waiting())
    decide_waiting();
  answer_readers();
  if (is_removable())
    finish_remove_user();
  if (may_leave() && !std::exchange(asked_to_retire_, true))
    app_.tell(std::make_unique<retire>(retire::step::asked, names_->user));
}

// Commits climbs that end here, and writes. From the first climb that reaches
// the app on, all climbs go up together, which keeps their order. A write waits
// for their answer.
void user_actor::decide_waiting() {
  std::unique_ptr<user_climb> up;
  while (!queue_.empty()) {
    if (is_one_of<write_state>(queue_.front())) {
      if (up)
        break;
      decide(take_as<write_state>(queue_.pop_front()));
      continue;
    }
    auto next = take_as<climb>(queue_.pop_front());
    // Over a store, a climb shows the keys as of its own place in the queue.
    // Later climbs of this batch are not durable when it is answered.
    if (up && live())
      up->climbs.back()->user = {state_.judged_keys(), generation()};
    judge(*next);
    if (!up && !next->touches_app) {
      state_.install();
      // Pushed before the answer: the session may push commits that build on
      // it.
      if (live())
        shared().store->push(std::move(next->decided));
      next->user = version_of(state_);
      next->app = seen_app_;
      send_down(std::move(next));
      continue;
    }
    if (!up) {
      up = std::make_unique<user_climb>();
      up->from = this;
    }
    const bool undecided = may_be_refused(*next);
    up->climbs.push_back(std::move(next));
    if (undecided)
      break;
  }
  if (!up)
    return;
  climbing_ = true;
  app_.tell(std::move(up));
}

void user_actor::receive(std::unique_ptr<user_climb> answered) {
  climbing_ = false;
  if (answered->failed) {
    state_.abandon();
    for (auto& undone : answered->climbs)
      refuse(std::move(undone), *answered->failed);
    return;
  }
  seen_app_ = std::move(answered->app);
  // Only the last climb of the batch can have been refused by the app.
  auto& last = *answered->climbs.back();
  if (last.refused_by_app && last.all_or_nothing)
    state_ = *std::exchange(before_whole_, std::nullopt);
  else if (last.refused_by_app && last.events.back()->touches(scope::user))
    state_.drop_last();
  state_.install();
  last.user = version_of(state_);
  for (auto& down : answered->climbs) {
    if (!live()) {
      down->user = last.user;
      down->app = seen_app_;
    }
    send_down(std::move(down));
  }
}

void user_actor::send_down(std::unique_ptr<climb> answered) {
  auto& session = *answered->from;
  session.tell(std::move(answered));
}

// -- look-ups -----------------------------------------------------------------

// A session that was idle enters the directory here, before its first letter.
// Over a store, no session is idle.
ref<inbox_actor> user_actor::spawn_child(const std::string& name,
                                         std::unique_ptr<idle_child> idle) {
  if (live())
    return spawn_actor<durable_session>(
      shared().system, share(), *this, names_, name);
  const bool exists = idle != nullptr;
  const auto made = spawn_actor<memory_session>(
    shared().system,
    share(),
    *this,
    names_,
    name,
    std::unique_ptr<idle_session>(static_cast<idle_session*>(idle.release())));
  if (exists)
    made->appear();
  return made;
}

template <std::derived_from<look_up> Letter>
void user_actor::receive(std::unique_ptr<Letter> wanted) {
  seen_app_ = wanted->app;
  auto& down = *wanted;
  send_below(std::move(wanted), down.key.id, down.user);
}

void user_actor::receive(std::unique_ptr<read_state> wanted) {
  wanted->outcome = all_keys();
  confirm(
    std::move(wanted), {nullptr, live(), nullptr}, {0, generation()}, app_);
}

void user_actor::receive(std::unique_ptr<list> wanted) {
  if (wanted->session)
    return list_session(std::move(wanted));
  seen_app_ = wanted->app;
  for (const auto& id : wanted->gather->chosen().at(names_->user)) {
    auto part = std::make_unique<list>(wanted->gather);
    part->session = id;
    list_session(std::move(part));
  }
}

// Sends a part to its session, or adds the row of an idle one. A part that was
// parked comes here again.
void user_actor::list_session(std::unique_ptr<list> part) {
  auto* const known = children_.find(*part->session);
  if (known == nullptr)
    return; // Removed since the app chose it.
  if (const auto* const idle = static_cast<const idle_session*>(known->idle()))
    return part->gather->add(
      session({names_->app, names_->user, *part->session},
              readonly_state({idle->keys, state_.keys(), seen_app_.keys, {}}),
              {},
              idle->last_update_time,
              idle->events.revision()));
  part->app = seen_app_;
  part->user = version_of(state_);
  known->send(std::move(part));
}

// -- leaving memory -----------------------------------------------------------

// Sends a letter that a departed session left to the session's successor.
void user_actor::hand_on(letter_ptr left, const std::string& id) {
  if (!is_one_of<append, follow>(*left)) {
    renew(*left);
    return owner_actor::deliver(std::move(left));
  }
  auto passed = std::make_unique<forward>(*shared().directory);
  passed->key = {names_->app, names_->user, id};
  shared().directory->start_forward(passed->key);
  passed->app = seen_app_;
  passed->held = std::move(left);
  owner_actor::deliver(std::move(passed));
}

void user_actor::receive(std::unique_ptr<retire> wished) {
  switch (wished->at) {
  case retire::step::gone:
    exists_ = exists_ || wished->existed;
    return settle_leaving(*wished);
  case retire::step::asked:
  case retire::step::stayed:
    return settle_leaving(*wished);
  case retire::step::granted:
    asked_to_retire_ = false;
    if (!may_leave())
      return app_.tell(
        std::make_unique<retire>(retire::step::stayed, names_->user));
    app_.tell(std::make_unique<retire>(retire::step::gone, names_->user));
    return quit();
  case retire::step::kept:
    asked_to_retire_ = false;
    return;
  case retire::step::suggested:
    return;
  }
}

bool user_actor::exists() const noexcept {
  return exists_ || state_.revision() > 0;
}

// A user without sessions leaves memory, and is made again on demand. Without a
// store, only a user that does not exist does so.
bool user_actor::may_leave() const noexcept {
  return (live() || !exists()) && is_idle();
}

bool user_actor::is_idle() const noexcept {
  return children_.empty() && queue_.empty() && !climbing_ && !removal_
         && !has_writes() && !is_loading() && !has_readers();
}

// -- removing -----------------------------------------------------------------

void user_actor::receive(std::unique_ptr<remove> wanted) {
  if (wanted->done_by_child)
    return finish_remove(std::move(wanted));
  const auto& id = wanted->id;
  remove_child(std::move(wanted), id);
}

void user_actor::finish_remove(std::unique_ptr<remove> removed) {
  auto parked = settle(removed->id, removed->gone);
  if (removed->gone && removed->outcome && *removed->outcome)
    exists_ = true;
  auto left = std::exchange(removed->left, letter_list());
  const auto id = removed->id;
  if (removed->live) {
    // Another process may have created the session: if the answer turns out
    // stale, the removal starts again at the app.
    removed->done_by_child = false;
    const auto generation = removed->generation;
    auto live = std::exchange(removed->live, nullptr);
    confirm(std::move(removed),
            {std::move(live), nullptr, nullptr},
            {generation},
            app_);
  } else if (!removed->for_user_removal) {
    answer(std::move(removed));
  }
  // Letters that the session left came before the parked ones.
  while (!left.empty())
    hand_on(left.pop_front(), id);
  unpark(std::move(parked));
}

// A session that was created again after its removal is removed, too, if the
// user is.
void user_actor::child_settled() {
  if (removal_)
    remove_sessions();
}

void user_actor::note_parked(letter& parked) {
  if (const auto* const down = look_up_of(parked))
    seen_app_ = down->app;
}

// A parked letter brought the app's version of the time when it arrived; later
// events may have changed the app since. It gets the newest version seen here.
// To ask the app again would put it after letters that came later.
void user_actor::renew(letter& parked) const {
  if (auto* const down = look_up_of(parked))
    down->app = seen_app_;
}

void user_actor::receive(std::unique_ptr<remove_user> wanted) {
  removal_ = std::move(wanted);
  remove_sessions();
}

void user_actor::remove_sessions() {
  children_.forget_idle();
  children_.for_each([](const std::string& id, children::child& known) {
    if (!known.park())
      return;
    auto each = std::make_unique<remove>();
    each->id = id;
    each->done_by_child = true;
    each->for_user_removal = true;
    known.tell(std::move(each));
  });
}

// Letters that wait for a load came before the removal and may open sessions:
// they are handled first. Writes that came before it are answered first.
bool user_actor::is_removable() const noexcept {
  return removal_ && !removing_ && children_.empty() && queue_.empty()
         && !climbing_ && !has_writes() && !is_loading();
}

// Ends the user. No climb can arrive: the last session has ended, and the app
// parks all letters for the user until it has this answer.
void user_actor::finish_remove_user() {
  if (live()) {
    removing_ = true;
    auto decided = std::make_unique<struct commit>();
    decided->from = live();
    decided->filled = true;
    store_change change;
    change.kind = change_kind::remove_user;
    change.owner = live()->name;
    decided->changes.push_back(std::move(change));
    shared().store->push(std::move(decided));
    return;
  }
  removal_->outcome = exists();
  end_removed();
}

// Readers of a removed user get an error. If the removal has failed, or there
// was no user, their letters go back to the app, which sends them to the next
// actor of this user.
void user_actor::end_removed() {
  const bool is_removed = removal_->outcome && *removal_->outcome;
  auto readers = take_readers();
  if (is_removed)
    shared().removals.note({names_->app, names_->user});
  removal_->gone = true;
  quit();
  app_.tell(std::move(removal_));
  while (!readers.empty()) {
    auto next = take_as<follow_state>(readers.pop_front());
    if (!is_removed) {
      app_.tell(std::move(next));
      continue;
    }
    next->outcome = removed_user(next->owner);
    next->count_in(shared().calls);
    answer(std::move(next));
  }
}

void user_actor::receive(std::unique_ptr<struct commit> answered) {
  if (!removing_)
    return settle_writes(*answered);
  if (answered->outcome == commit::verdict::durable)
    removal_->outcome = exists();
  else
    removal_->outcome = answered->why;
  end_removed();
}

} // namespace troupe::actors
