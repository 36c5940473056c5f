#include "troupe/actors/session_actor.hpp"

#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/user_actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace troupe::actors {

namespace {

bool has_typed(const append& next, scope where) noexcept {
  return std::ranges::any_of(next.changes().share(where), is_typed);
}

// The last operation on each key.
std::map<std::string_view, const operation*>
last_of(std::span<const operation> share) {
  std::map<std::string_view, const operation*> last;
  for (const auto& done : share)
    last[done.name] = &done;
  return last;
}

bool is_same(std::span<const operation> stored,
             std::span<const operation> retry) {
  if (std::ranges::equal(stored, retry))
    return true;
  // What was typed is resolved in the stored event: its key is all that is left
  // to compare.
  const bool resolved = std::ranges::any_of(retry, is_typed)
                        && std::ranges::none_of(stored, is_typed);
  return std::ranges::equal(last_of(stored),
                            last_of(retry),
                            [resolved](const auto& before, const auto& now) {
                              return before.first == now.first
                                     && (resolved
                                         || *before.second == *now.second);
                            });
}

// Whether a retry says what the stored event says. Its time and its invocation
// are those of one attempt, often filled in by the runtime, and do not count.
bool is_same(const event& stored, const event& retry) {
  const auto& before = stored.actions;
  const auto& now = retry.actions;
  return retry.author == stored.author && retry.branch == stored.branch
         && retry.content == stored.content && retry.extra == stored.extra
         && retry.long_running_tool_ids == stored.long_running_tool_ids
         && now.artifact_delta == before.artifact_delta
         && now.transfer_to_agent == before.transfer_to_agent
         && now.escalate == before.escalate
         && now.skip_summarization == before.skip_summarization
         && now.extra == before.extra
         && std::ranges::all_of(
           std::array{scope::session, scope::user, scope::app},
           [&](scope where) {
             return is_same(before.state_delta.share(where),
                            now.state_delta.share(where));
           });
}

} // namespace

session_actor& as_session(const caf::strong_actor_ptr& actor) noexcept {
  return static_cast<session_actor&>(*actor->get());
}

session_actor::session_actor(caf::actor_config& config,
                             std::shared_ptr<setup> shared,
                             user_actor& user,
                             std::shared_ptr<const user_names> names,
                             std::string id)
  : owner_actor(config, std::move(shared)),
    user_(user),
    names_(std::move(names)),
    id_(std::move(id)) {}

bool session_actor::has_key(const session_key& key) const noexcept {
  return id_ == key.id && names_->user == key.user && names_->app == key.app;
}

session_key session_actor::key() const {
  return {names_->app, names_->user, id_};
}

bool session_actor::enter(std::size_t bytes) noexcept {
  const auto& limits = share()->options;
  const auto before
    = held_.fetch_add(one_append + bytes, std::memory_order_relaxed);
  const auto held = before % one_append;
  if (before / one_append < limits.session_appends_max
      && (held == 0 || held + bytes <= limits.session_bytes_max)
      && shared().appends.enter(bytes))
    return true;
  held_.fetch_sub(one_append + bytes, std::memory_order_relaxed);
  return false;
}

void session_actor::leave(std::size_t bytes) noexcept {
  held_.fetch_sub(one_append + bytes, std::memory_order_relaxed);
  shared().appends.leave(bytes);
}

void session_actor::ask_app(letter_ptr wanted) {
  user_.ask_app(std::move(wanted));
}

caf::behavior session_actor::make_behavior() {
  return session_door(*this, share());
}

error session_actor::closed_reason() const {
  return shared().closing
           ? error(errc::cancelled, "the runtime has shut down")
           : error(errc::not_found,
                   fmt::format("session {} does not exist", to_string(key())));
}

void session_actor::see(state_map user, state_map app) {
  seen_user_ = std::move(user);
  seen_app_ = std::move(app);
}

state_snapshot session_actor::snapshot() const {
  return {state_.keys(), seen_user_, seen_app_, {}};
}

// -- what it hears
// -------------------------------------------------------------

void session_actor::receive(letter_ptr received) {
  switch (received->kind) {
  case letter_kind::create: {
    auto& first = static_cast<create&>(*received);
    see(std::move(first.user), std::move(first.app));
    return queue_.push_back(std::move(received));
  }
  case letter_kind::append:
  case letter_kind::remove:
    return queue_.push_back(std::move(received));
  case letter_kind::climb:
    return receive(take_as<climb>(std::move(received)));
  case letter_kind::get:
    return created_ ? receive(take_as<get>(std::move(received)))
                    : early_.push_back(std::move(received));
  case letter_kind::list:
    // Not there before its initial state is.
    return created_ ? receive(take_as<list>(std::move(received))) : void();
  case letter_kind::start_run:
    return created_ ? receive(take_as<start_run>(std::move(received)))
                    : early_.push_back(std::move(received));
  case letter_kind::end_run:
    return receive(take_as<end_run>(std::move(received)));
  case letter_kind::shut_down:
    shared().directory.remove(key());
    return quit();
  default:
    assert(!"a letter that no session receives");
  }
}

void session_actor::receive(std::unique_ptr<climb> answered) {
  climbing_ = false;
  see(std::move(answered->user), std::move(answered->app));
  if (answered->last_refused) {
    auto& last = *accepted_.back();
    if (last.touches(scope::session))
      state_.drop_last();
    last.outcome = std::move(*answered->last_refused);
    last.refused = true;
    ids_.forget(last.said->id, log_.size() + accepted_.size());
    accepted_.pop_back();
  }
  commit();
}

void session_actor::receive(std::unique_ptr<get> wanted) {
  see(std::move(wanted->user), std::move(wanted->app));
  if (wanted->refresh)
    publish();
  auto events = log_.slice();
  if (wanted->options.num_recent_events)
    events = events.recent(*wanted->options.num_recent_events);
  if (wanted->options.after)
    events = events.after(*wanted->options.after);
  wanted->outcome = session(key(),
                            readonly_state(snapshot()),
                            std::move(events),
                            last_update_time_,
                            log_.size());
  answer(std::move(wanted));
}

void session_actor::receive(std::unique_ptr<list> wanted) {
  wanted->gather->add(session(
    key(),
    readonly_state(
      {state_.keys(), std::move(wanted->user), std::move(wanted->app), {}}),
    {},
    last_update_time_,
    log_.size()));
}

void session_actor::settle() {
  while (!climbing_ && !queue_.empty()) {
    if (queue_.front().kind == letter_kind::remove)
      return finish_remove();
    start_batch();
  }
}

// -- appending
// -----------------------------------------------------------------

// Commits the narrow events at the head at once; or sends a batch up, from the
// first wide event on, in which narrow ones ride along.
void session_actor::start_batch() {
  std::unique_ptr<climb> up;
  while (!queue_.empty() && queue_.front().kind != letter_kind::remove) {
    auto& front = static_cast<append&>(queue_.front());
    const bool wide = front.touches(scope::user) || front.touches(scope::app);
    if (wide && !up && !batch_.empty())
      break;
    auto next = take_as<append>(queue_.pop_front());
    if (join_earlier(next))
      continue;
    const bool undecided
      = has_typed(*next, scope::user) || has_typed(*next, scope::app);
    batch_.push_back(std::move(next));
    auto& last = *batch_.back();
    if (!accept(last, undecided) || !wide)
      continue;
    if (!up) {
      up = std::make_unique<climb>();
      up->from = this;
    }
    up->events.push_back(&last);
    up->touches_app = up->touches_app || last.touches(scope::app);
    // Nothing may be computed on an event that a wider owner may still refuse.
    if (undecided)
      break;
  }
  if (!up)
    return commit();
  climbing_ = true;
  user_.tell(std::move(up));
}

result<void> session_actor::check_revision(const append& next) const {
  const auto revision = log_.size() + accepted_.size();
  if (!next.expected_revision || *next.expected_revision == revision)
    return {};
  return error(errc::conflict,
               fmt::format("session {} is at revision {}, not {}",
                           to_string(key()),
                           revision,
                           *next.expected_revision));
}

bool session_actor::accept(append& next, bool undecided) {
  auto judged = check_revision(next);
  const auto owned = next.changes().share(scope::session);
  if (judged && !owned.empty())
    judged
      = state_.judge(owned, next.resolved, undecided, share()->options.limits);
  if (!judged) {
    next.outcome = judged.error();
    next.refused = true;
    return false;
  }
  accepted_.push_back(&next);
  if (next.kind == letter_kind::append)
    ids_.add(next.said->id,
             log_.size() + accepted_.size(),
             share()->options.remembered_ids);
  return true;
}

// A retry of an event that is stored gets the stored one; of an event under
// way, it waits for the same answer.
bool session_actor::join_earlier(std::unique_ptr<append>& retry) {
  if (retry->kind != letter_kind::append)
    return false;
  const auto logged = log_.size();
  const auto& id = retry->said->id;
  const auto number = ids_.find(id,
                                logged + accepted_.size(),
                                share()->options.remembered_ids,
                                [&](std::uint64_t candidate) {
                                  if (candidate <= logged)
                                    return log_[candidate - 1]->id == id;
                                  const auto index = candidate - logged - 1;
                                  return index < accepted_.size()
                                         && accepted_[index]->said->id == id;
                                });
  if (number == 0)
    return false;
  const bool stored = number <= logged;
  const auto& original
    = stored ? *log_[number - 1] : *accepted_[number - logged - 1]->said;
  retry->joined = true;
  if (!is_same(original, *retry->said)) {
    retry->outcome = error(
      errc::conflict,
      fmt::format("event id '{}' was used before with other content", id));
    retry->refused = true;
    batch_.push_back(std::move(retry));
  } else if (stored) {
    retry->outcome = log_[number - 1];
    retry->refused = true; // It adds nothing.
    batch_.push_back(std::move(retry));
  } else {
    accepted_[number - logged - 1]->followers.push_back(std::move(retry));
  }
  return true;
}

void session_actor::commit() {
  state_.install();
  for (auto* next : accepted_) {
    last_update_time_ = std::max(last_update_time_, next->said->timestamp);
    if (next->kind == letter_kind::create) {
      finish_create(static_cast<create&>(*next));
      continue;
    }
    auto stored = finish_event(*next);
    log_.push_back(stored);
    next->outcome = std::move(stored);
  }
  accepted_.clear();
  publish();
  for (auto& answered : batch_)
    reply(std::move(answered));
  batch_.clear();
}

event_ptr session_actor::finish_event(append& judged) {
  if (judged.resolved.empty())
    return judged.said;
  if (!judged.own)
    judged.own = std::make_shared<event>(*judged.said);
  judged.own->actions.state_delta.resolve(judged.resolved);
  return judged.own;
}

void session_actor::finish_create(create& judged) {
  created_ = true;
  // Before the answer, so that whoever has it finds the session.
  shared().directory.enter(key(), caf::actor_cast<caf::strong_actor_ptr>(this));

  // What came too early looks again, behind the answer of the creation.
  while (!early_.empty())
    ask_app(early_.pop_front());
  judged.created
    = session(key(), readonly_state(snapshot()), {}, last_update_time_, 0);
}

void session_actor::reply(std::unique_ptr<append> answered) {
  while (!answered->followers.empty()) {
    auto follower = take_as<append>(answered->followers.pop_front());
    follower->outcome = answered->outcome;
    reply(std::move(follower));
  }
  if (!answered->reply_to)
    return answer(std::move(answered));
  const auto invocation = std::exchange(answered->reply_to, nullptr);
  as_inbox(invocation).tell(std::move(answered));
}

// -- runs
// ----------------------------------------------------------------------

void session_actor::publish() {
  if (desk_ && !desk_->active.empty())
    desk_->view->write({snapshot(), log_.slice()});
}

void session_actor::receive(std::unique_ptr<start_run> wanted) {
  see(std::move(wanted->user), std::move(wanted->app));
  if (wanted->session != this)
    return wanted->fail(closed_reason());
  if (!desk_)
    desk_ = std::make_unique<run_desk>();
  if (desk_->active.empty() || wanted->policy == run_policy::interleave)
    return grant(std::move(wanted));
  if (wanted->policy == run_policy::reject)
    return wanted->fail(
      error(errc::busy,
            fmt::format("session {} already has a run", to_string(key()))));
  desk_->waiting.push_back(std::move(wanted));
}

void session_actor::grant(std::unique_ptr<start_run> next) {
  desk_->active.push_back(next->invocation);
  publish();
  next->view = desk_->view;
  queue_.push_back(std::move(next->message));
  const auto invocation = next->invocation;
  as_inbox(invocation).tell(std::move(next));
}

void session_actor::receive(std::unique_ptr<end_run> ended) {
  see(std::move(ended->user), std::move(ended->app));
  if (!desk_)
    return;
  const auto is_it = [&ended](const caf::strong_actor_ptr& active) {
    return &as_inbox(active) == ended->invocation;
  };
  if (std::erase_if(desk_->active, is_it) == 0) {
    // It was cancelled before its turn.
    letter_list still;
    while (!desk_->waiting.empty()) {
      auto next = take_as<start_run>(desk_->waiting.pop_front());
      if (is_it(next->invocation))
        next->fail({errc::cancelled, "the run was cancelled before its turn"});
      else
        still.push_back(std::move(next));
    }
    desk_->waiting = std::move(still);
  }
  if (desk_->active.empty() && !desk_->waiting.empty())
    grant(take_as<start_run>(desk_->waiting.pop_front()));
  if (desk_->active.empty() && desk_->waiting.empty())
    desk_.reset();
}

// -- the end
// -------------------------------------------------------------------

void session_actor::finish_remove() {
  auto removal = take_as<remove>(queue_.pop_front());
  shared().directory.remove(key());
  quit();
  if (desk_)
    for (const auto& active : desk_->active)
      as_inbox(active).tell(std::make_unique<cancel>(
        error(errc::cancelled,
              fmt::format("session {} was deleted", to_string(key())))));
  removal->done_by_session = true;
  user_.tell(std::move(removal));
}

void session_actor::release() {
  const auto why = closed_reason();
  while (!queue_.empty())
    queue_.pop_front()->fail(why);
  while (!early_.empty())
    early_.pop_front()->fail(why);
  if (desk_)
    while (!desk_->waiting.empty())
      desk_->waiting.pop_front()->fail(why);
  desk_.reset();
}

} // namespace troupe::actors
