#include "troupe/actors/state_follow_control.hpp"

#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/setup.hpp"

#include <utility>

namespace troupe::detail {

namespace {

// The comparison takes time, so it is made when the state is delivered.
state_change change_to(actors::followed_state now, scope where) {
  auto& keys = *now.place.keys;
  state_change made;
  made.revision = now.place.revision;
  made.keys = changed_keys(now.before ? &*now.before : nullptr, keys, where);
  made.lists_all = !now.before;
  state_snapshot shown;
  (where == scope::user ? shown.user : shown.app) = std::move(keys);
  made.state = readonly_state(std::move(shown));
  return made;
}

} // namespace

state_follow_control::state_follow_control(
  std::shared_ptr<actors::setup> shared,
  owner_name owner,
  std::optional<std::uint64_t> from)
  : reader_control(std::move(shared)),
    owner_(std::move(owner)),
    delivered_(from) {
  if (owner_.where() == scope::user)
    shared_->removals.keep(owner_);
  if (from)
    place_.emplace().revision = *from;
}

state_follow_control::~state_follow_control() {
  if (owner_.where() == scope::user)
    shared_->removals.forget(owner_);
}

void state_follow_control::send_letter() {
  auto wanted = std::make_unique<actors::follow_state>();
  wanted->owner = owner_;
  wanted->receiver = shared_from_this();
  {
    const std::lock_guard guard(mutex_);
    wanted->place = place_;
  }
  actors::follow_state_of(shared_, std::move(wanted));
}

// The owner may keep the letter, and would stay in memory for it. The next
// letter of an ended reader tells that.
void state_follow_control::take_letter_back() {
  if (!shared_->closing)
    send_letter();
}

void state_follow_control::install(actors::followed_state answer) {
  place_ = answer.place;
  if (answer.is_start)
    delivered_ = answer.place.revision;
  else
    fetched_ = std::move(answer);
}

std::optional<std::optional<state_change>>
state_follow_control::take_fetched() {
  if (!fetched_)
    return std::nullopt;
  delivered_ = fetched_->place.revision;
  return change_to(*std::exchange(fetched_, std::nullopt), owner_.where());
}

void state_follow_control::drop_fetched() {
  fetched_.reset();
}

std::optional<std::uint64_t> state_follow_control::revision() const {
  const std::lock_guard guard(mutex_);
  return delivered_;
}

} // namespace troupe::detail
