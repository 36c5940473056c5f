#include "troupe/runtime/state_follower.hpp"

#include "troupe/actors/reader_call.hpp"
#include "troupe/actors/state_follow_control.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <utility>

namespace troupe {

state_follower::state_follower(
  std::shared_ptr<detail::state_follow_control> control)
  : control_(std::move(control)) {}

state_follower::state_follower(state_follower&&) noexcept = default;

state_follower& state_follower::operator=(state_follower&& other) noexcept {
  std::swap(control_, other.control_);
  return *this;
}

state_follower::~state_follower() {
  if (control_)
    with_memory_or_end([this] { close(); });
}

pending<std::optional<state_change>> state_follower::next() {
  return actors::next_of<actors::followed_state, std::optional<state_change>>(
    control_);
}

std::optional<std::uint64_t> state_follower::revision() const {
  return control_->revision();
}

void state_follower::close() {
  control_->close();
}

state_follower::iterator::iterator(state_follower* source) : source_(source) {
  ++*this;
}

state_follower::iterator& state_follower::iterator::operator++() {
  current_ = source_->next().value();
  return *this;
}

} // namespace troupe
