#include "troupe/actors/user_actor.hpp"

#include "troupe/actors/app_actor.hpp"
#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/spawn.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

bool has_typed(const append& next, scope where) noexcept {
  return std::ranges::any_of(next.changes().share(where), is_typed);
}

} // namespace

user_actor::user_actor(caf::actor_config& config,
                       std::shared_ptr<setup> shared,
                       app_actor& app,
                       std::shared_ptr<const user_names> names)
  : owner_actor(config, std::move(shared)),
    app_(app),
    names_(std::move(names)) {}

void user_actor::ask_app(letter_ptr wanted) {
  app_.tell(std::move(wanted));
}

caf::behavior user_actor::make_behavior() {
  return closed_door();
}

error user_actor::closed_reason() const {
  return {errc::cancelled, "the runtime is shutting down"};
}

void user_actor::receive(letter_ptr received) {
  switch (received->kind) {
  case letter_kind::climb:
    return queue_.push_back(std::move(received));
  case letter_kind::user_climb:
    return receive(take_as<user_climb>(std::move(received)));
  case letter_kind::create:
    return receive(take_as<create>(std::move(received)));
  case letter_kind::get:
    return pass_down(take_as<get>(std::move(received)));
  case letter_kind::start_run:
    return pass_down(take_as<start_run>(std::move(received)));
  case letter_kind::end_run:
    return pass_down(take_as<end_run>(std::move(received)));
  case letter_kind::list:
    return receive(take_as<list>(std::move(received)));
  case letter_kind::read_state: {
    auto wanted = take_as<read_state>(std::move(received));
    wanted->keys = state_.keys();
    return answer(std::move(wanted));
  }
  case letter_kind::remove:
    return receive(take_as<remove>(std::move(received)));
  case letter_kind::remove_user:
    return receive(take_as<remove_user>(std::move(received)));
  case letter_kind::shut_down:
    for (const auto& [id, known] : sessions_)
      as_inbox(known.session).tell(std::make_unique<shut_down>());
    return quit();
  default:
    assert(!"a letter that no user receives");
  }
}

// -- appending
// -----------------------------------------------------------------

void user_actor::judge(climb& next) {
  for (auto* const passing : next.events) {
    const auto owned = passing->changes().share(scope::user);
    if (owned.empty())
      continue;
    auto judged = state_.judge(owned,
                               passing->resolved,
                               has_typed(*passing, scope::app),
                               share()->options.limits);
    if (judged)
      continue;
    // Only a typed operation is refused, and its event is the last of the
    // batch.
    assert(passing == next.events.back());
    next.last_refused = judged.error();
    next.events.pop_back();
    break;
  }
  next.touches_app
    = std::ranges::any_of(next.events, [](const append* passing) {
        return passing->touches(scope::app);
      });
}

// Commits at once what reaches no further than here; from the first batch on
// that reaches the app, everything goes up.
void user_actor::settle() {
  if (climbing_)
    return;
  std::unique_ptr<user_climb> up;
  while (!queue_.empty()) {
    auto next = take_as<climb>(queue_.pop_front());
    judge(*next);
    if (!up && !next->touches_app) {
      state_.install();
      send_down(std::move(next));
      continue;
    }
    if (!up) {
      up = std::make_unique<user_climb>();
      up->from = this;
    }
    const bool undecided
      = !next->events.empty() && has_typed(*next->events.back(), scope::app);
    up->climbs.push_back(std::move(next));
    if (undecided)
      break;
  }
  if (!up) {
    if (removal_)
      finish_remove_user();
    return;
  }
  climbing_ = true;
  app_.tell(std::move(up));
}

void user_actor::receive(std::unique_ptr<user_climb> answered) {
  climbing_ = false;
  seen_app_ = std::move(answered->app);
  // The app can have refused the very last event alone.
  auto& last = *answered->climbs.back();
  if (last.refused_by_app && last.events.back()->touches(scope::user))
    state_.drop_last();
  state_.install();
  for (auto& down : answered->climbs)
    send_down(std::move(down));
}

void user_actor::send_down(std::unique_ptr<climb> answered) {
  answered->user = state_.keys();
  answered->app = seen_app_;
  auto& session = *answered->from;
  session.tell(std::move(answered));
}

// -- look-ups
// ------------------------------------------------------------------

void user_actor::receive(std::unique_ptr<create> wanted) {
  seen_app_ = wanted->app;
  auto& known = sessions_[wanted->key.id];
  if (known.parked)
    return known.parked->push_back(std::move(wanted));
  if (known.session) {
    wanted->created
      = error(errc::already_exists,
              fmt::format("session {} exists already", to_string(wanted->key)));
    return answer(std::move(wanted));
  }
  known.session = spawn_actor<session_actor>(
    shared().system, share(), *this, names_, wanted->key.id);
  wanted->user = state_.keys();
  as_inbox(known.session).tell(std::move(wanted));
}

template <class Letter>
void user_actor::pass_down(std::unique_ptr<Letter> wanted) {
  seen_app_ = wanted->app;
  const auto found = sessions_.find(wanted->key.id);
  if (found == sessions_.end())
    return refuse_unknown(std::move(wanted));
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  wanted->user = state_.keys();
  as_inbox(found->second.session).tell(std::move(wanted));
}

void user_actor::receive(std::unique_ptr<list> wanted) {
  seen_app_ = wanted->app;
  for (const auto& [id, known] : sessions_) {
    if (known.parked)
      continue;
    auto part = std::make_unique<list>(wanted->gather);
    part->app = wanted->app;
    part->user = state_.keys();
    as_inbox(known.session).tell(std::move(part));
  }
}

// -- removing
// ------------------------------------------------------------------

void user_actor::receive(std::unique_ptr<remove> wanted) {
  if (wanted->done_by_session)
    return finish_remove(std::move(wanted));
  const auto found = sessions_.find(wanted->id);
  if (found == sessions_.end()) {
    wanted->outcome = false;
    return answer(std::move(wanted));
  }
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  found->second.parked = std::make_unique<letter_list>();
  as_inbox(found->second.session).tell(std::move(wanted));
}

void user_actor::finish_remove(std::unique_ptr<remove> removed) {
  const auto found = sessions_.find(removed->id);
  auto parked = std::move(found->second.parked);
  sessions_.erase(found);
  if (!removed->for_user_removal) {
    removed->outcome = true;
    answer(std::move(removed));
  }
  while (!parked->empty()) {
    auto next = parked->pop_front();
    renew(*next);
    receive(std::move(next));
  }
  // What was created again behind its removal goes with the rest.
  if (removal_)
    remove_sessions();
}

// What was parked came with the app's root of that time; events may have come
// down since.
void user_actor::renew(letter& parked) const {
  switch (parked.kind) {
  case letter_kind::create:
    static_cast<create&>(parked).app = seen_app_;
    break;
  case letter_kind::get:
    static_cast<get&>(parked).app = seen_app_;
    break;
  case letter_kind::start_run:
    static_cast<start_run&>(parked).app = seen_app_;
    break;
  case letter_kind::end_run:
    static_cast<end_run&>(parked).app = seen_app_;
    break;
  default:
    break;
  }
}

void user_actor::receive(std::unique_ptr<remove_user> wanted) {
  removal_ = std::move(wanted);
  remove_sessions();
}

void user_actor::remove_sessions() {
  for (auto& [id, known] : sessions_) {
    if (known.parked)
      continue;
    auto each = std::make_unique<remove>();
    each->id = id;
    each->for_user_removal = true;
    known.parked = std::make_unique<letter_list>();
    as_inbox(known.session).tell(std::move(each));
  }
}

// Once the last session is gone nothing can climb here any more, and the app
// sends nobody before it has this answer.
void user_actor::finish_remove_user() {
  if (!sessions_.empty())
    return;
  quit();
  app_.tell(std::move(removal_));
}

void user_actor::release() {
  sessions_.clear();
}

} // namespace troupe::actors
