#include "troupe/actors/follow_control.hpp"

#include "troupe/actors/owners/session_letters.hpp"
#include "troupe/actors/setup.hpp"

#include <utility>

namespace troupe::detail {

follow_control::follow_control(std::shared_ptr<actors::setup> shared,
                               session_key key,
                               std::optional<std::uint64_t> from)
  : reader_control(std::move(shared)),
    key_(std::move(key)) {
  if (!from)
    return;
  place_.emplace().number = *from;
  is_wish_ = true;
}

void follow_control::send_letter() {
  auto wanted = std::make_unique<actors::follow>();
  wanted->key = key_;
  wanted->receiver = shared_from_this();
  {
    const std::lock_guard guard(mutex_);
    wanted->place = place_;
    wanted->is_wish = is_wish_;
  }
  actors::follow_session(*shared_, std::move(wanted));
}

void follow_control::install(actors::followed answer) {
  place_ = answer.place;
  is_wish_ = false;
  fetched_ = std::move(answer);
  taken_ = 0;
}

std::optional<event_ptr> follow_control::take_fetched() {
  if (taken_ == fetched_.events.size())
    return std::nullopt;
  auto said = fetched_.events[taken_];
  if (++taken_ == fetched_.events.size())
    drop_fetched();
  return said;
}

void follow_control::drop_fetched() {
  fetched_ = {};
  taken_ = 0;
}

std::optional<std::uint64_t> follow_control::revision() const {
  const std::lock_guard guard(mutex_);
  if (!place_)
    return std::nullopt;
  return place_->number - (fetched_.events.size() - taken_);
}

} // namespace troupe::detail
