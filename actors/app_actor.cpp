#include "troupe/actors/app_actor.hpp"

#include "troupe/actors/caf_door.hpp"
#include "troupe/actors/list_gather.hpp"
#include "troupe/actors/spawn.hpp"

#include <caf/actor_system.hpp>
#include <fmt/format.h>

namespace troupe::actors {

app_actor::app_actor(caf::actor_config& config,
                     std::shared_ptr<setup> shared,
                     std::string name)
  : owner_actor(config, std::move(shared)),
    name_(std::move(name)) {}

caf::behavior app_actor::make_behavior() {
  return app_door(*this, share(), name_);
}

error app_actor::closed_reason() const {
  return {errc::cancelled, "the runtime is shutting down"};
}

void app_actor::receive(letter_ptr received) {
  if (received->kind == letter_kind::user_climb)
    return judge(
      *judged_.emplace_back(take_as<user_climb>(std::move(received))));
  // Whatever looks at the state or goes down comes behind the answers.
  settle();
  switch (received->kind) {
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
  case letter_kind::read_state:
    return receive(take_as<read_state>(std::move(received)));
  case letter_kind::remove:
    return receive(take_as<remove>(std::move(received)));
  case letter_kind::remove_user:
    return receive(take_as<remove_user>(std::move(received)));
  case letter_kind::shut_down:
    for (const auto& [name, known] : users_)
      as_inbox(known.user).tell(std::make_unique<shut_down>());
    return quit();
  default:
    assert(!"a letter that no app receives");
  }
}

// -- appending
// -----------------------------------------------------------------

void app_actor::judge(user_climb& next) {
  for (auto& passing : next.climbs)
    for (auto* const each : passing->events) {
      const auto owned = each->changes().share(scope::app);
      if (owned.empty())
        continue;
      auto judged
        = state_.judge(owned, each->resolved, false, share()->options.limits);
      if (judged)
        continue;
      // Only a typed operation is refused, and its event is the last that the
      // user sent.
      assert(passing == next.climbs.back() && each == passing->events.back());
      passing->last_refused = judged.error();
      passing->refused_by_app = true;
    }
}

void app_actor::settle() {
  if (judged_.empty())
    return;
  state_.install();
  for (auto& answered : judged_) {
    answered->app = state_.keys();
    auto& user = *answered->from;
    user.tell(std::move(answered));
  }
  judged_.clear();
}

// -- look-ups
// ------------------------------------------------------------------

void app_actor::receive(std::unique_ptr<create> wanted) {
  auto& known = users_[wanted->key.user];
  if (known.parked)
    return known.parked->push_back(std::move(wanted));
  if (!known.user)
    known.user = spawn_actor<user_actor>(
      shared().system,
      share(),
      *this,
      std::make_shared<const user_names>(user_names{name_, wanted->key.user}));
  wanted->app = state_.keys();
  as_inbox(known.user).tell(std::move(wanted));
}

template <class Letter>
void app_actor::pass_down(std::unique_ptr<Letter> wanted) {
  const auto found = users_.find(wanted->key.user);
  if (found == users_.end())
    return refuse_unknown(std::move(wanted));
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  wanted->app = state_.keys();
  as_inbox(found->second.user).tell(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<list> wanted) {
  for (const auto& [name, known] : users_) {
    if (known.parked || (wanted->only_user && *wanted->only_user != name))
      continue;
    auto part = std::make_unique<list>(wanted->gather);
    part->app = state_.keys();
    as_inbox(known.user).tell(std::move(part));
  }
}

void app_actor::receive(std::unique_ptr<read_state> wanted) {
  if (!wanted->user) {
    wanted->keys = state_.keys();
    return answer(std::move(wanted));
  }
  const auto found = users_.find(*wanted->user);
  if (found == users_.end())
    return answer(std::move(wanted));
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  as_inbox(found->second.user).tell(std::move(wanted));
}

// -- removing
// ------------------------------------------------------------------

void app_actor::receive(std::unique_ptr<remove> wanted) {
  const auto found = users_.find(wanted->user);
  if (found == users_.end()) {
    wanted->outcome = false;
    return answer(std::move(wanted));
  }
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  as_inbox(found->second.user).tell(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<remove_user> wanted) {
  if (wanted->done_by_user)
    return receive_removed(std::move(wanted));
  const auto found = users_.find(wanted->user);
  if (found == users_.end()) {
    wanted->outcome = false;
    return answer(std::move(wanted));
  }
  if (found->second.parked)
    return found->second.parked->push_back(std::move(wanted));
  found->second.parked = std::make_unique<letter_list>();
  wanted->done_by_user = true;
  as_inbox(found->second.user).tell(std::move(wanted));
}

void app_actor::receive_removed(std::unique_ptr<remove_user> removed) {
  const auto found = users_.find(removed->user);
  auto parked = std::move(found->second.parked);
  users_.erase(found);
  removed->outcome = true;
  answer(std::move(removed));
  while (!parked->empty())
    receive(parked->pop_front());
}

void app_actor::release() {
  users_.clear();
}

} // namespace troupe::actors
