#include "troupe/actors/parts/write_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe::actors {

namespace {

error behind(const error& failure) {
  return {errc::cancelled,
          fmt::format("not stored, because an earlier append of the same "
                      "writer failed ({})",
                      to_string(failure))};
}

} // namespace

result<std::uint64_t> write_order::take_place() {
  const std::lock_guard guard(mutex_);
  if (has_failed_)
    return behind(refused_.begin()->second);
  ++under_way_;
  return ++last_;
}

void write_order::leave_place() {
  std::vector<completion<void>> ready;
  {
    const std::lock_guard guard(mutex_);
    if (--under_way_ > 0 || waiting_.empty())
      return;
    ready = std::exchange(waiting_, {});
    refused_.clear();
    has_failed_ = false;
  }
  for (const auto& done : ready)
    done({});
}

std::optional<error> write_order::refusal_of(std::uint64_t place) const {
  const std::lock_guard guard(mutex_);
  if (refused_.empty() || refused_.begin()->first >= place)
    return std::nullopt;
  return behind(refused_.begin()->second);
}

void write_order::refuse(std::uint64_t place, const error& why) {
  const std::lock_guard guard(mutex_);
  refused_.insert_or_assign(place, why);
}

void write_order::take_back(std::uint64_t place) {
  const std::lock_guard guard(mutex_);
  refused_.erase(place);
}

void write_order::fail(std::uint64_t place, const error& why) {
  const std::lock_guard guard(mutex_);
  refused_.insert_or_assign(place, why);
  has_failed_ = true;
}

void write_order::resume(completion<void> done) {
  {
    const std::lock_guard guard(mutex_);
    if (has_failed_ && under_way_ > 0) {
      waiting_.push_back(std::move(done));
      return;
    }
    if (has_failed_) {
      refused_.clear();
      has_failed_ = false;
    }
  }
  done({});
}

void write_place::answer(const completion<event_ptr>& done,
                         result<event_ptr> outcome) const {
  if (!outcome)
    order_->fail(number_, outcome.error());
  done(std::move(outcome));
  order_->leave_place();
}

} // namespace troupe::actors
