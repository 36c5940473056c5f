#include "troupe/actors/runs/fan_out.hpp"

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/runs/lane.hpp"
#include "troupe/actors/runs/wait_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

// Number of lanes that are started at a time, before they run. Short lanes of a
// portion then end before the next lanes take memory.
constexpr int lanes_per_portion = 64;

} // namespace

fan_out::fan_out(lane_actor& owner, fan_out_request& request)
  : owner_(owner),
    request_(request),
    running_(request.lanes.size()),
    timed_out_(request.lanes.size()) {
  for (const auto& lane : request_.lanes) {
    succeeded_ += lane.succeeded ? 1U : 0U;
    failures_ += lane.failed ? 1U : 0U;
  }
}

// -- starting -----------------------------------------------------------------

bool fan_out::may_start() const noexcept {
  return next_ < request_.lanes.size() && left_ < request_.lanes_max && !ending_
         && !owner_.cancelled() && !more_under_way;
}

void fan_out::start_more() {
  for (int started = 0; may_start(); ++started) {
    if (started == lanes_per_portion) {
      more_under_way = true;
      owner_.tell(std::make_unique<actors::more_lanes>());
      return;
    }
    if (!request_.lanes[next_].is_over)
      start(next_);
    ++next_;
  }
}

void fan_out::start(std::size_t index) {
  auto& lane = request_.lanes[index];
  running_[index] = owner_.spawn_below(
    index,
    {.which = lane.which,
     .caller = request_.caller,
     .branch = lane.branch,
     .temp = lane.temp,
     .from = lane.from,
     .visit = lane.visit,
     .above = request_.caller->place(),
     .number = lane.number,
     .visit_key = lane.visit ? lane.visit_key : owner_.start().visit_key});
  ++left_;
  if (request_.timeout)
    owner_.call_after(*request_.timeout, [this, index] { time_out(index); });
}

// -- endings ------------------------------------------------------------------

bool fan_out::was_told_to_end(std::size_t index, const error& failure) const {
  return (ending_ || owner_.cancelled()) && !timed_out_[index]
         && failure.code() == errc::cancelled;
}

void fan_out::receive(lane_ended& ended) {
  const auto index = ended.index;
  running_[index] = nullptr;
  --left_;
  auto& lane = request_.lanes[index];
  lane.is_over = true;
  if (ended.outcome) {
    lane.escalated = ended.outcome->escalated;
    lane.paused = std::move(ended.outcome->paused);
    if (lane.paused)
      return;
    lane.succeeded = true;
    lane.event = std::move(ended.last_said);
    lane.output = std::move(ended.output);
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
        "it did not end within {} ms",
        request_.timeout.value_or(std::chrono::milliseconds(0)).count()));
  lane.failed = std::move(failure);
  if (!request_.first_failed)
    request_.first_failed = index;
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
  running_[index]->tell(std::make_unique<struct cancel>(
    error(errc::cancelled, "the time limit of its lane has passed")));
}

void fan_out::end_rest(const error& reason) {
  if (!std::exchange(ending_, true))
    cancel(reason);
}

void fan_out::cancel(const error& reason) {
  for (const auto& lane : running_)
    if (lane)
      lane->tell(std::make_unique<struct cancel>(reason));
}

bool fan_out::is_over() const noexcept {
  return left_ == 0 && !more_under_way;
}

void fan_out::finish() {
  const bool has_quorum = request_.on_failure == lane_failures::quorum
                          && succeeded_ >= request_.quorum;
  request_.is_paused
    = !has_quorum && std::ranges::any_of(request_.lanes, [](const auto& lane) {
        return lane.paused != nullptr;
      });
  // Lanes that have paused may still succeed or fail.
  const bool is_enough
    = request_.on_failure == lane_failures::collect || has_quorum
      || (request_.on_failure == lane_failures::quorum && request_.is_paused
          && request_.lanes.size() - failures_ >= request_.quorum);
  if (failures_ > 0 && !is_enough) {
    std::optional<errc> code;
    std::string reasons;
    for (const auto& lane : request_.lanes)
      if (const auto& failure = lane.failed) {
        reasons += fmt::format("{}lane '{}': {}",
                               code ? "; " : "",
                               lane.which.name(),
                               code ? to_string(*failure) : failure->message());
        code = code.value_or(failure->code());
      }
    request_.outcome = error(*code, std::move(reasons));
  } else if (owner_.cancelled()) {
    request_.outcome = *owner_.cancelled();
  }
}

} // namespace troupe::actors
