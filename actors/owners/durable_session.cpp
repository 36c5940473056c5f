#include "troupe/actors/owners/durable_session.hpp"

#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/forked_past.hpp"
#include "troupe/actors/sessions/past.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

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

durable_session::durable_session(caf::actor_config& config,
                                 const std::shared_ptr<setup>& shared,
                                 user_actor& user,
                                 const std::shared_ptr<const user_names>& names,
                                 const std::string& id)
  : session_actor(
    config, shared, user, names, id, owner_name{names->app, names->user, id}) {}

// -- messages -----------------------------------------------------------------

bool durable_session::is_for_now(const letter& received) const noexcept {
  return is_one_of<climb,
                   struct commit,
                   view_refresh,
                   read_events,
                   find_events,
                   retire,
                   end_run,
                   shut_down>(received);
}

void durable_session::handle(letter_ptr received) {
  if (!try_dispatch<struct commit, view_refresh, read_events, find_events>(
        received, [this](auto answered) {
          note_use();
          receive(std::move(answered));
        }))
    session_actor::handle(std::move(received));
}

// Letters that are decided again come first, then look-ups, then new letters.
void durable_session::finish_letters() {
  if (!is_waiting())
    requeue();
  handle_early();
  session_actor::finish_letters();
  forget_found();
}

// -- writing ------------------------------------------------------------------

// The events may have to be judged again. The outcomes of their operations
// therefore go into copies.
void durable_session::commit() {
  for (auto* each : batch_.accepted())
    each->own.reset();
  auto before = make_savepoint();
  install_batch();
  send_to_store(std::move(before));
}

void durable_session::reserve_place(climb& up) {
  up.decided = std::make_unique<struct commit>();
  reserved_ = up.decided.get();
}

// The batch never reached the queue: its reserved place is gone.
void durable_session::undo_batch(const error& why) {
  reserved_ = nullptr;
  session_actor::undo_batch(why);
}

void durable_session::renew_view(get& wanted) {
  wanted.renewed = make_view();
}

// An append may repeat an event of the past, so the session has to load the
// newest events and their ids. It loads at once if a letter waits, and
// otherwise with the next letter: an unused fork then takes no memory for them.
void durable_session::take_past(forked_past& past) {
  events_ = event_window(past.from.revision, {});
  trimmed_to_ = past.first_revision;
  if (queue_.empty())
    load_on_demand();
  else
    load_again();
}

store_change durable_session::change_of(const append& decided,
                                        std::uint64_t number) const {
  store_change change;
  change.owner = live()->name;
  change.session_revision = number;
  if (const auto* const creation = as<create>(decided)) {
    change.kind = change_kind::create;
    change.event = decided.event;
    if (creation->fork)
      change.past = creation->fork->from;
  } else {
    change.event = *decided.outcome;
  }
  if (decided.mark)
    change.runs.push_back(*decided.mark);
  if (decided.touches(scope::user))
    change.user_revision = decided.user_revision;
  if (decided.touches(scope::app))
    change.app_revision = decided.app_revision;
  return change;
}

// The changes that the accepted events of the batch make. They are the newest
// events of the session.
std::vector<store_change> durable_session::changes() const {
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
void durable_session::send_to_store(std::unique_ptr<savepoint> before) {
  auto decisions = changes();
  batch_.settle();
  auto own = reserved_ != nullptr ? nullptr : std::make_unique<struct commit>();
  auto& decided = own ? *own : *std::exchange(reserved_, nullptr);
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
  if (!decisions.empty())
    decided.revision = revision();
  decided.changes = std::move(decisions);
  decided.before = std::move(before);
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
  ++commits_;
  forget_old_events();
  if (!own)
    return shared().store->fill(decided);
  decided.filled = true;
  shared().store->push(std::move(own));
}

std::unique_ptr<struct commit>
durable_session::make_commit(letter_ptr decided) const {
  auto made = std::make_unique<struct commit>();
  made->from = live();
  made->owners = owners(false, false);
  made->filled = true;
  made->letters.push_back(std::move(decided));
  return made;
}

void durable_session::push(std::unique_ptr<struct commit> decided) {
  ++commits_;
  shared().store->push(std::move(decided));
}

void durable_session::receive(std::unique_ptr<struct commit> answered) {
  --commits_;
  if (answered->outcome == commit::verdict::again || answered->refuses_again)
    note_undone(*answered);
  if (answered->outcome == commit::verdict::durable)
    acknowledged_ = std::max(acknowledged_, answered->revision);
  reply_to_all(std::move(answered));
  answer_followers();
}

void durable_session::reply_to_all(std::unique_ptr<struct commit> answered) {
  using verdict = actors::commit::verdict;
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

void durable_session::reply_to(std::unique_ptr<append> decided,
                               const struct commit& answered) {
  using verdict = actors::commit::verdict;
  if (decided->mark)
    if (const auto found = std::ranges::find(answered.kept_out,
                                             decided->mark->invocation_id,
                                             &kept_out_run::invocation_id);
        found != answered.kept_out.end())
      return keep_out(std::move(decided), found->other);
  if (answered.outcome == verdict::again
      || (answered.refuses_again && is_refused(*decided)))
    return decide_again(std::move(decided));
  if (answered.outcome == verdict::failed)
    decided->refuse(answered.why);
  reply_in_order(std::move(decided));
}

void durable_session::reply_to(std::unique_ptr<remove> removal,
                               const struct commit& answered) {
  removing_ = false;
  switch (answered.outcome) {
  case commit::verdict::again:
    return again_.push_back(std::move(removal));
  case commit::verdict::durable:
    return finish_remove(std::move(removal));
  case commit::verdict::failed:
    removal->outcome = answered.why;
    parent().tell(std::move(removal));
    if (!fetching_)
      resume_waiting(std::exchange(waiting_, letter_list()));
  }
}

void durable_session::reply_to(std::unique_ptr<start_run> refused,
                               const struct commit& answered) {
  if (answered.refuses_again)
    return again_.push_back(std::move(refused));
  refused->fail(answered.outcome == commit::verdict::failed
                  ? answered.why
                  : unknown_session(key()));
}

// Puts letters that are decided again before all letters that came since.
void durable_session::requeue() {
  if (again_.empty())
    return;
  auto since = std::exchange(queue_, letter_list());
  for (auto again = std::exchange(again_, letter_list()); !again.empty();) {
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
void durable_session::decide_again(std::unique_ptr<append> decided) {
  auto followers = std::exchange(decided->followers, letter_list());
  forget_message(*decided);
  reset_all(*decided);
  again_.push_back(std::move(decided));
  while (!followers.empty())
    decide_again(take_as<append>(followers.pop_front()));
}

// A run whose message is not decided has not begun here.
void durable_session::forget_message(const append& undone) {
  if (!undone.starts_run || !runs_)
    return;
  if (auto* const run = runs_->find(undone.reply_to.id()))
    run->message = UINT64_MAX;
}

// The run stays active here, so that later runs of this process wait for it.
// Its invocation decides whether it is refused or sends the message again.
void durable_session::keep_out(std::unique_ptr<append> message,
                               const std::string& other) {
  forget_message(*message);
  reset_all(*message);
  message->is_kept_out = true;
  if (other == message->mark->invocation_id)
    message->refuse(
      error(errc::busy,
            fmt::format("run '{}' of session {} has gone on in its process, or "
                        "was recovered or closed meanwhile; list the open "
                        "runs, and recover it again if it is free",
                        other,
                        to_string(key()))));
  else
    message->refuse(error(
      errc::busy,
      fmt::format(
        "session {} already has a run of another process, '{}'; "
        "try again when it has ended, or when its process has "
        "been silent for {} ms",
        to_string(key()),
        other,
        std::chrono::ceil<std::chrono::milliseconds>(shared().options.run_lease)
          .count())));
  reply_in_order(std::move(message));
}

// The view of these runs, or of the creator of the session, showed stale state
// of user or app. The answers wait until a `get` has brought the current state.
void durable_session::reply_after_refresh(letter_list answered) {
  letter_list held;
  while (!answered.empty())
    held.push_back(hold_back(answered.pop_front()));
  const auto number = held_back_.hold(std::move(held));
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
letter_ptr durable_session::hold_back(letter_ptr answered) {
  if (is_one_of<create>(*answered))
    --creations_;
  return answered;
}

void durable_session::receive(std::unique_ptr<view_refresh> refreshed) {
  held_back_.note(refreshed->number, refreshed->seen);
  reply_held();
}

void durable_session::reply_held() {
  while (auto ready = held_back_.take())
    while (!ready->letters.empty())
      reply_held(take_as<append>(ready->letters.pop_front()), ready->seen);
}

void durable_session::reply_held(std::unique_ptr<append> answered,
                                 const std::optional<result<session>>& seen) {
  auto* const creation = as<create>(*answered);
  if (creation != nullptr && seen && *seen && creation->created)
    creation->created = **seen;
  // A run, or a creator, must not continue without the current state. If the
  // session is gone, the run ends with `cancelled`. A refused creation keeps
  // its reason.
  const bool continues = creation != nullptr ? creation->created.has_value()
                                             : answered->reply_to != nullptr;
  if (seen && !*seen && continues)
    answered->refuse(answered->reply_to && (goes_with_user_ || is_gone(*seen))
                       ? deleted_session(key())
                       : seen->error());
  if (creation != nullptr)
    ++creations_; // `reply` counts it down.
  reply(std::move(answered));
}

// Called at the end. All these answers are durable, but the session is gone, or
// will be unless the store fails to remove its user.
void durable_session::reply_all_held() {
  held_back_.give_up(
    goes_with_user_
      ? error(errc::store_failed,
              fmt::format("session {} cannot be read while its user is being "
                          "removed",
                          to_string(key())))
      : closed_reason());
  reply_held();
}

// Queues the answer after those that wait for a refreshed view, so a run gets
// its events in order.
void durable_session::reply_in_order(std::unique_ptr<append> answered) {
  if (held_back_.empty())
    reply(std::move(answered));
  else
    held_back_.hold_behind(hold_back(std::move(answered)));
}

// -- loading ------------------------------------------------------------------

bool durable_session::can_load() const noexcept {
  return !climbing_ && commits_ == 0;
}

void durable_session::refuse_waiting(const error& why) {
  forget_savepoint();
  for (auto* letters : {&again_, &queue_, &early_, &waiting_}) {
    auto refused = std::exchange(*letters, letter_list());
    while (!refused.empty())
      refuse(refused.pop_front(), why);
  }
  // Nothing else would load the session for the readers that wait.
  if (followers_)
    for (auto refused = followers_->take(); !refused.empty();)
      refuse(refused.pop_front(), why);
}

void durable_session::refuse(letter_ptr received, const error& why) {
  if (try_dispatch<remove>(
        received, [&](auto removal) { refuse(std::move(removal), why); }))
    return;
  if (is_one_of<create>(*received) && creations_ > 0)
    --creations_;
  received->fail(why);
}

// The user waits for this answer.
void durable_session::refuse(std::unique_ptr<remove> removal,
                             const error& why) {
  if (removal->for_user_removal)
    return finish_remove(std::move(removal));
  removal->outcome = why;
  parent().tell(std::move(removal));
}

void durable_session::note_parked(letter& parked) {
  if (const auto* const down = look_up_of(parked))
    see(down->user, down->app);
}

// -- end ----------------------------------------------------------------------

bool durable_session::start_remove(std::unique_ptr<remove> removal) {
  if (removal->for_user_removal) {
    // The user's own removal follows in the store. Here it is enough to wait
    // for commits under way.
    if (commits_ > 0) {
      queue_.push_front(std::move(removal));
      return false;
    }
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
  removing_ = true;
  const bool expects = removal->options.expected_revision.has_value();
  auto decided = make_commit(std::move(removal));
  store_change change;
  change.kind = change_kind::remove;
  change.owner = live()->name;
  if (expects)
    change.session_revision = revision() + 1;
  decided->changes.push_back(std::move(change));
  push(std::move(decided));
  return false;
}

// The end of a session that goes with its user is durable only with the removal
// of the user. Later letters therefore wait for that at the app.
void durable_session::finish_remove(std::unique_ptr<remove> removal) {
  goes_with_user_ = removal->for_user_removal;
  successor_ = ref(parent().app());
  end(*removal);
  if (goes_with_user_)
    return parent().tell(std::move(removal));
  removal_ = std::move(removal);
  is_removed_ = true;
}

void durable_session::release() {
  reply_all_held();
  if (goes_with_user_ || is_removed_)
    leave_all_behind();
  for (auto* letters : {&queue_, &early_, &again_, &waiting_})
    fail_all(std::exchange(*letters, letter_list()));
  session_actor::release();
}

bool durable_session::is_idle() const noexcept {
  return session_actor::is_idle() && commits_ == 0 && again_.empty()
         && waiting_.empty() && held_back_.empty() && !fetching_ && !removing_;
}

bool durable_session::is_for_successor(const letter& sent) const noexcept {
  if (!is_removed_)
    return session_actor::is_for_successor(sent);
  // A run ends with the session that it began in.
  if (const auto* const said = as<append>(sent))
    return !said->reply_to;
  return is_one_of<create, get, follow, forward, start_run>(sent);
}

void durable_session::turn_away(letter_ptr sent) {
  const auto* const said = as<append>(*sent);
  // Appends of runs are cancelled with the user.
  if (goes_with_user_ && said != nullptr && said->reply_to)
    return sent->fail(deleted_session(key()));
  session_actor::turn_away(std::move(sent));
}

void durable_session::leave_behind(letter_ptr sent) {
  if (goes_with_user_)
    send_on(std::move(sent));
  else
    session_actor::leave_behind(std::move(sent));
}

// Sends a letter back to the app. The app holds it until the removal of the
// user is durable or has failed.
void durable_session::send_on(letter_ptr sent) {
  if (is_one_of<append, follow>(*sent))
    turn_away(std::move(sent));
  else if (is_one_of<get, start_run, forward>(*sent))
    successor_->tell(std::move(sent));
  else
    session_actor::turn_away(std::move(sent));
}

void durable_session::leave_all_behind() {
  const auto leave = [this](letter_list letters) {
    while (!letters.empty())
      leave_behind(letters.pop_front());
  };
  for (auto* letters : {&again_, &queue_, &early_, &waiting_})
    leave(std::exchange(*letters, letter_list()));
  if (runs_) {
    leave(runs_->take_waiting());
    leave(runs_->take_until_end());
  }
  // Readers wait until the removal of the user is durable or has failed.
  if (followers_ && goes_with_user_)
    leave(followers_->take());
}

void durable_session::part() {
  if (!successor_ || goes_with_user_)
    return;
  if (!removal_)
    return tell_gone(nullptr);
  removal_->left = std::exchange(left_, letter_list());
  parent().tell(std::move(removal_));
}

} // namespace troupe::actors
