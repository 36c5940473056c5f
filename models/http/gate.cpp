#include "troupe/models/http/gate.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe {

// Invariant: `placed` of a host and the numbers in `lanes_` count the requests
// that have a place. A place passes directly from a request to the next one of
// its host, so a new request cannot overtake the waiting ones.

host_gate::entry host_gate::enter(const http_transfer_ptr& transfer) {
  const std::lock_guard guard(mutex_);
  ++known_;
  ++under_way_;
  if (closed_)
    return entry::closed;
  auto& to = hosts_[transfer->origin()];
  if (to.placed < limits_.requests_per_host) {
    ++to.placed;
    stays_.emplace(transfer.get(), stay{&to, std::nullopt});
    transfer->set_lane(take_lane());
    return entry::placed;
  }
  if (to.waiting.size() >= limits_.waiting_per_host)
    return entry::full;
  to.waiting.push_back(transfer);
  stays_.emplace(transfer.get(), stay{&to, std::prev(to.waiting.end())});
  waiting_.set(transfer, transfer->total_due());
  return entry::waits;
}

void host_gate::note_refused() {
  const std::lock_guard guard(mutex_);
  ++known_;
  ++under_way_;
}

std::size_t host_gate::take_lane() {
  const auto roomy = std::find_if(lanes_.begin(), lanes_.end(), [&](auto used) {
    return used < limits_.requests_per_lane;
  });
  const auto index = static_cast<std::size_t>(roomy - lanes_.begin());
  if (roomy == lanes_.end())
    lanes_.push_back(0);
  ++lanes_[index];
  return index;
}

http_transfer_ptr host_gate::leave(const http_transfer_ptr& transfer) {
  const std::lock_guard guard(mutex_);
  const auto left = stays_.find(transfer.get());
  assert(left != stays_.end() && !left->second.waits);
  auto& from = *left->second.at;
  stays_.erase(left);
  if (from.waiting.empty()) {
    --from.placed;
    --lanes_[transfer->lane()];
    remove_if_unused(transfer->origin());
    return nullptr;
  }
  // The place passes on, so `placed` and the number of the lane stay.
  auto next = std::move(from.waiting.front());
  from.waiting.pop_front();
  waiting_.remove(next);
  stays_.at(next.get()).waits.reset();
  next->set_lane(transfer->lane());
  return next;
}

host_gate::whereabouts host_gate::withdraw(const http_transfer_ptr& transfer) {
  const std::lock_guard guard(mutex_);
  const auto found = stays_.find(transfer.get());
  if (found == stays_.end())
    return whereabouts::elsewhere;
  const auto [at, waits] = found->second;
  if (!waits)
    return whereabouts::placed;
  at->waiting.erase(*waits);
  stays_.erase(found);
  waiting_.remove(transfer);
  return whereabouts::waited;
}

std::optional<host_gate::time_point> host_gate::next_due() const {
  const std::lock_guard guard(mutex_);
  return waiting_.next();
}

std::vector<http_transfer_ptr> host_gate::take_overdue(time_point now) {
  const std::lock_guard guard(mutex_);
  std::vector<http_transfer_ptr> taken;
  while (auto due = waiting_.take(now)) {
    const auto found = stays_.find(due->get());
    found->second.at->waiting.erase(*found->second.waits);
    stays_.erase(found);
    taken.push_back(*std::move(due));
  }
  return taken;
}

std::vector<http_transfer_ptr> host_gate::close() {
  const std::lock_guard guard(mutex_);
  closed_ = true;
  std::vector<http_transfer_ptr> taken;
  while (auto waited = waiting_.take_any()) {
    stays_.erase(waited->get());
    taken.push_back(*std::move(waited));
  }
  for (auto& [origin, at] : hosts_)
    at.waiting.clear();
  return taken;
}

void host_gate::remove_if_unused(const std::string& origin) {
  const auto found = hosts_.find(origin);
  if (found->second.placed == 0 && found->second.waiting.empty())
    hosts_.erase(found);
}

// -- counts ----

// `under_way_` counts a request until its end is reported, `known_` until its
// handler is destroyed. A client waits for `known_`: a handler may refer to
// objects of the caller.

std::size_t host_gate::under_way() const {
  const std::lock_guard guard(mutex_);
  return under_way_;
}

void host_gate::note_ended() {
  const std::lock_guard guard(mutex_);
  --under_way_;
}

void host_gate::forget() {
  const std::lock_guard guard(mutex_);
  if (--known_ == 0)
    empty_.notify_all();
}

void host_gate::wait_until_empty() {
  std::unique_lock guard(mutex_);
  empty_.wait(guard, [this] { return known_ == 0; });
}

} // namespace troupe
