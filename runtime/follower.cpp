#include "troupe/runtime/follower.hpp"

#include "troupe/actors/follow_control.hpp"
#include "troupe/actors/reader_call.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <utility>

namespace troupe {

follower::follower(std::shared_ptr<detail::follow_control> control)
  : control_(std::move(control)) {}

follower::follower(follower&&) noexcept = default;

follower& follower::operator=(follower&& other) noexcept {
  std::swap(control_, other.control_);
  return *this;
}

follower::~follower() {
  if (control_)
    with_memory_or_end([this] { close(); });
}

pending<event_ptr> follower::next() {
  return actors::next_of<actors::followed, event_ptr>(control_);
}

std::optional<std::uint64_t> follower::revision() const {
  return control_->revision();
}

void follower::close() {
  control_->close();
}

follower::iterator::iterator(follower* source) : source_(source) {
  ++*this;
}

follower::iterator& follower::iterator::operator++() {
  current_ = source_->next().value();
  return *this;
}

} // namespace troupe
