// Invariant: climbs are decided in order of arrival, and their answers go down
// before any later look-up (`finish_letters` in `handle`). Letters between two
// owners keep their order, so a look-up shows all or nothing of each climb.

#include "troupe/actors/owners/app.hpp"

#include "troupe/actors/caf_interface.hpp"
#include "troupe/actors/engine/spawn.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/sessions/list_gather.hpp"

#include <caf/actor_system.hpp>

#include <optional>

namespace troupe::actors {

app_actor::app_actor(caf::actor_config& config,
                     std::shared_ptr<setup> shared,
                     std::string name)
  : parent_actor(config, std::move(shared), owner_name{name}),
    name_(std::move(name)),
    listed_(live() ? nullptr : std::make_shared<list_index>()) {}

caf::behavior app_actor::make_behavior() {
  return app_interface(*this, share(), name_);
}

error app_actor::closed_reason() const {
  return closed();
}

bool app_actor::is_for_now(const letter& received) const noexcept {
  if (const auto* const removed = as<remove_user>(received))
    return removed->done_by_child;
  return is_one_of<struct commit, retire, shut_down>(received);
}

void app_actor::handle(letter_ptr received) {
  // Any other letter at hand cancels the departure.
  leaving_ = false;
  if (!is_one_of<retire>(*received))
    idle_checks_ = 0;
  // A look-up that overtook the answers of earlier climbs would show the new
  // `app:` keys beside old keys of user and session.
  if (!is_one_of<user_climb>(*received))
    finish_letters();
  dispatch_to_parent<user_climb, list_users, struct commit>(
    std::move(received), [this](auto sent) { receive(std::move(sent)); });
}

void app_actor::receive(std::unique_ptr<user_climb> up) {
  judge(*judged_.emplace_back(std::move(up)));
}

void app_actor::refuse(letter_ptr received, const error& why) {
  if (!try_dispatch<user_climb>(received, [&why](auto undone) {
        undone->failed = why;
        auto& user = *undone->from;
        user.tell(std::move(undone));
      }))
    parent_actor::refuse(std::move(received), why);
}

// -- appending ----------------------------------------------------------------

void app_actor::judge(user_climb& next) {
  for (auto& passing : next.climbs) {
    // Over a store, a climb shows the keys as of its own place in the queue.
    // Later climbs are not durable when it is answered.
    if (last_judged_ != nullptr && live())
      last_judged_->app = {state_.judged_keys(), generation()};
    last_judged_ = passing.get();
    std::optional<scope_state> before;
    if (passing->all_or_nothing)
      before = state_;
    for (auto* const each : passing->events) {
      if (!each->touches(scope::app))
        continue;
      auto judged
        = each->judge(scope::app, state_, false, shared().options.limits);
      if (judged) {
        each->app_revision = state_.judged_revision();
        continue;
      }
      // An event that the app may refuse is the last one that the user sent, or
      // belongs to a session with its past, which is the last climb.
      assert(passing == next.climbs.back()
             && (passing->all_or_nothing || each == passing->events.back()));
      passing->last_refused = judged.error();
      passing->refused_by_app = true;
      if (passing->all_or_nothing)
        state_ = *std::move(before);
      break;
    }
  }
}

void app_actor::finish_letters() {
  if (std::exchange(leaving_, false) && is_idle()
      && shared().apps->remove_unused(*this))
    return quit();
  finish_climbs();
  answer_readers();
}

void app_actor::finish_climbs() {
  if (judged_.empty())
    return;
  state_.install();
  std::exchange(last_judged_, nullptr)->app = version_of(state_);
  // The commits enter the store's queue before the answers go down: an owner
  // that has an answer may push commits that build on it.
  if (live()) {
    letter_list decided;
    for (auto& each : judged_)
      for (auto& passing : each->climbs)
        decided.push_back(std::move(passing->decided));
    shared().store->push(std::move(decided));
  }
  for (auto& answered : judged_) {
    answered->app = version_of(state_);
    auto& user = *answered->from;
    user.tell(std::move(answered));
  }
  judged_.clear();
}

// -- look-ups -----------------------------------------------------------------

// A user is never idle without a store: its sessions need it.
ref<inbox_actor> app_actor::spawn_child(const std::string& name,
                                        std::unique_ptr<idle_child>) {
  return spawn_actor<user_actor>(
    shared().system,
    share(),
    *this,
    std::make_shared<const user_names>(user_names{name_, name, listed_}));
}

template <std::derived_from<look_up> Letter>
void app_actor::receive(std::unique_ptr<Letter> wanted) {
  auto& down = *wanted;
  send_below(std::move(wanted), down.key.user, down.app);
}

void app_actor::receive(std::unique_ptr<list> wanted) {
  auto& gather = *wanted->gather;
  gather.choose(listed_->page(wanted->only_user,
                              gather.from(),
                              gather.places_max(),
                              [this](const std::string& user) {
                                const auto* const known = children_.find(user);
                                return known != nullptr && !known->is_parked();
                              }));
  for (const auto& [user, ids] : gather.chosen()) {
    auto part = std::make_unique<list>(wanted->gather);
    part->app = version_of(state_);
    children_.find(user)->tell(std::move(part));
  }
}

void app_actor::receive(std::unique_ptr<list_users> wanted) {
  wanted->outcome = children_.names(wanted->behind, wanted->limit);
  answer(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<read_state> wanted) {
  if (!wanted->user) {
    wanted->outcome = all_keys();
    return confirm(std::move(wanted),
                   {nullptr, nullptr, live()},
                   {0, 0, generation()},
                   *this);
  }
  auto* const known = find_child(*wanted->user);
  if (known == nullptr) {
    wanted->outcome = scope_keys();
    return answer(std::move(wanted));
  }
  known->send(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<follow_state> wanted) {
  if (wanted->owner.where() == scope::app)
    return parent_actor::receive(std::move(wanted));
  const auto& user = wanted->owner.user;
  // A letter of a reader that has ended makes no user.
  auto* const known
    = wanted->receiver->is_over() ? children_.find(user) : &open_child(user);
  if (known != nullptr)
    known->send(std::move(wanted));
}

// -- writes without a session -------------------------------------------------

// `handle` has finished the climbs before.
void app_actor::receive(std::unique_ptr<write_state> wanted) {
  if (!wanted->user)
    return decide(std::move(wanted));
  const auto& user = *wanted->user;
  auto& known = open_child(user);
  known.send(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<struct commit> answered) {
  settle_writes(*answered);
}

// -- removing -----------------------------------------------------------------

void app_actor::receive(std::unique_ptr<remove> wanted) {
  auto* const known = find_child(wanted->user);
  if (known == nullptr) {
    wanted->outcome = false;
    return answer(std::move(wanted));
  }
  known->send(std::move(wanted));
}

void app_actor::receive(std::unique_ptr<remove_user> wanted) {
  if (wanted->done_by_child)
    return receive_removed(std::move(wanted));
  const auto& user = wanted->user;
  remove_child(std::move(wanted), user);
}

void app_actor::receive_removed(std::unique_ptr<remove_user> removed) {
  auto parked = settle(removed->user, removed->gone);
  answer(std::move(removed));
  unpark(std::move(parked));
}

// -- leaving memory -----------------------------------------------------------

bool app_actor::is_idle() const noexcept {
  return live() && children_.empty() && judged_.empty() && !has_writes()
         && !is_loading() && !is_stale() && !has_readers();
}

// An app has no parent that could park letters while it leaves. So it leaves
// only if no reference exists outside: no other code can send it a letter then.
bool app_actor::is_unknown_elsewhere() const noexcept {
  // Held by the directory, by the scheduler during this job, and by the store's
  // queue if the app was loaded.
  const std::size_t own = live()->actor ? 3 : 2;
  return ctrl()->strong_refs == own && !has_letters();
}

void app_actor::receive(std::unique_ptr<retire> wished) {
  switch (wished->at) {
  case retire::step::suggested:
    ++idle_checks_;
    leaving_
      = wished->at_once || idle_checks_ > retirement::idle_checks_per_age;
    return;
  case retire::step::asked:
  case retire::step::gone:
  case retire::step::stayed:
    return settle_leaving(*wished);
  default:
    assert(false && "a step that is not an app's");
  }
}

// Not expected: a user that leaves memory has no letters.
void app_actor::hand_on(letter_ptr left, const std::string&) {
  owner_actor::deliver(std::move(left));
}

} // namespace troupe::actors
