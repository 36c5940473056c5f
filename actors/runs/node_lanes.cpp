#include "troupe/actors/runs/node_lanes.hpp"

#include "troupe/actors/runs/node_body.hpp"

#include <memory>

namespace troupe::actors {

void node_lanes::start(std::uint64_t visit,
                       lane_start start,
                       std::optional<std::chrono::milliseconds> timeout) {
  auto lane = owner_.spawn_below(visit, std::move(start));
  running_[visit] = lane;
  if (timeout)
    end_after(*timeout, visit, lane, std::chrono::nanoseconds(0));
}

void node_lanes::end_after(std::chrono::nanoseconds delay,
                           std::uint64_t visit,
                           const ref<lane_actor>& lane,
                           std::chrono::nanoseconds known) {
  // A later attempt of the visit has another lane.
  owner_.call_after(delay, [this, visit, known, id = lane->id()] {
    const auto found = running_.find(visit);
    if (found == running_.end() || found->second->id() != id)
      return;
    const auto& told = found->second->start().visit->waited;
    const std::chrono::nanoseconds waited(told ? told->load() : 0);
    if (waited > known)
      return end_after(waited - known, visit, found->second, waited);
    late_.insert(visit);
    found->second->tell(std::make_unique<struct cancel>(
      error(errc::cancelled, "the time limit of its node has passed")));
  });
}

void node_lanes::wake_after(std::uint64_t visit,
                            std::chrono::nanoseconds delay) {
  ++waiting_visits_;
  owner_.call_after(delay, [this, visit] {
    --waiting_visits_;
    node_news told;
    told.is = node_news::kind::due;
    told.visit = visit;
    news_.push_back(std::move(told));
  });
}

void node_lanes::cancel(const error& reason) {
  is_cancelled_ = true;
  for (const auto& [visit, lane] : running_)
    lane->tell(std::make_unique<struct cancel>(reason));
}

void node_lanes::receive(lane_ended& ended) {
  node_news told;
  told.is = node_news::kind::ended;
  told.visit = ended.index;
  told.outcome = std::move(ended.outcome);
  told.is_late = late_.erase(ended.index) > 0;
  running_.erase(ended.index);
  news_.push_back(std::move(told));
}

void node_lanes::receive(node_committed& committed) {
  node_news told;
  told.is = node_news::kind::committed;
  told.visit = committed.visit;
  told.event = std::move(committed.event);
  news_.push_back(std::move(told));
}

std::optional<node_news> node_lanes::take() {
  if (news_.empty())
    return std::nullopt;
  auto oldest = std::move(news_.front());
  news_.pop_front();
  return oldest;
}

std::coroutine_handle<> node_lanes::take_waiting() {
  if (news_.empty() && !is_cancelled_)
    return nullptr;
  return std::exchange(coroutine_, nullptr);
}

} // namespace troupe::actors
