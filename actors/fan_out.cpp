#include "troupe/actors/fan_out.hpp"

#include "troupe/actors/lane_actor.hpp"
#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/wait_answer.hpp"

#include <fmt/format.h>

namespace troupe::actors {

namespace {

// Lanes that are started before those at hand get their turn: short ones end
// before the last ones take memory.
constexpr int lanes_per_turn = 64;

} // namespace

fan_out::fan_out(lane_actor& owner, fan_out_request& request)
  : owner_(owner),
    request_(request),
    running_(request.lanes.size()),
    timed_out_(request.lanes.size()) {
  request_.failed.assign(request_.lanes.size(), std::nullopt);
  request_.succeeded.assign(request_.lanes.size(), false);
  request_.said.assign(request_.lanes.size(), nullptr);
}

// -- starting
// ------------------------------------------------------------------

bool fan_out::may_start() const noexcept {
  return next_ < request_.lanes.size() && left_ < request_.lanes_max && !ending_
         && !owner_.cancelled() && !more_under_way;
}

void fan_out::start_more() {
  for (int started = 0; may_start(); ++started) {
    if (started == lanes_per_turn) {
      more_under_way = true;
      owner_.tell(std::make_unique<struct signal>(letter_kind::more_lanes));
      return;
    }
    start(next_++);
  }
}

void fan_out::start(std::size_t index) {
  auto& lane = request_.lanes[index];
  running_[index] = owner_.spawn_below(
    index, lane.which, request_.caller, std::move(lane.branch), lane.temp);
  ++left_;
  if (request_.timeout)
    owner_.call_after(*request_.timeout, [this, index] { time_out(index); });
}

// -- ends
// ----------------------------------------------------------------------

bool fan_out::was_told_to_end(std::size_t index, const error& failure) const {
  return (ending_ || owner_.cancelled()) && !timed_out_[index]
         && failure.code() == errc::cancelled;
}

void fan_out::receive(lane_ended& ended) {
  const auto index = ended.index;
  running_[index] = nullptr;
  --left_;
  if (ended.outcome) {
    escalated_ = escalated_ || *ended.outcome;
    request_.succeeded[index] = true;
    request_.said[index] = std::move(ended.last_said);
    ++succeeded_;
    if (request_.on_failure == lane_failures::quorum
        && succeeded_ == request_.quorum)
      end_rest({errc::cancelled, "enough other lanes have succeeded"});
    return;
  }
  auto failure = ended.outcome.error();
  if (was_told_to_end(index, failure))
    return;
  if (timed_out_[index])
    failure = error(
      errc::deadline_exceeded,
      fmt::format(
        "it was not done within {} ms",
        request_.timeout.value_or(std::chrono::milliseconds(0)).count()));
  request_.failed[index] = std::move(failure);
  ++failures_;
  const bool hopeless
    = request_.on_failure == lane_failures::fail_fast
      || (request_.on_failure == lane_failures::quorum
          && request_.lanes.size() - failures_ < request_.quorum);
  if (hopeless)
    end_rest({errc::cancelled,
              fmt::format("another lane of '{}' failed",
                          request_.caller->agent_name())});
}

void fan_out::time_out(std::size_t index) {
  if (!running_[index] || ending_)
    return;
  timed_out_[index] = true;
  as_inbox(running_[index])
    .tell(std::make_unique<struct cancel>(
      error(errc::cancelled, "the time of its lane is up")));
}

void fan_out::end_rest(const error& reason) {
  if (!std::exchange(ending_, true))
    cancel(reason);
}

void fan_out::cancel(const error& reason) {
  for (const auto& lane : running_)
    if (lane)
      as_inbox(lane).tell(std::make_unique<struct cancel>(reason));
}

bool fan_out::is_over() const noexcept {
  return left_ == 0 && !more_under_way;
}

void fan_out::finish() {
  request_.outcome = escalated_;
  const bool is_enough = request_.on_failure == lane_failures::collect
                         || (request_.on_failure == lane_failures::quorum
                             && succeeded_ >= request_.quorum);
  if (failures_ > 0 && !is_enough) {
    std::optional<errc> code;
    std::string reasons;
    for (std::size_t index = 0; index < request_.failed.size(); ++index)
      if (const auto& failure = request_.failed[index]) {
        reasons += fmt::format("{}lane '{}': {}",
                               code ? "; " : "",
                               request_.lanes[index].which.name(),
                               code ? to_string(*failure) : failure->message());
        code = code.value_or(failure->code());
      }
    request_.outcome = error(*code, std::move(reasons));
  } else if (owner_.cancelled()) {
    request_.outcome = *owner_.cancelled();
  }
}

} // namespace troupe::actors
