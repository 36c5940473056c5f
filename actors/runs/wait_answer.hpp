// Delivers an answer to a waiting lane, from any thread. Holds the lane weakly:
// a model or timer that answers late must not keep a run alive.

#pragma once

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/runs/lane.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace troupe::actors {

/// The answer to one wait of a lane, given by number. The lane ignores it if it
/// waits for something else by then. If it is destroyed unused, it calls
/// `when_dropped` on the lane; without that, a lost answer would hang the run.
class wait_answer {
public:
  wait_answer(lane_actor& lane,
              std::uint64_t wait,
              std::function<void(const error&)> when_dropped)
    : lane_(lane.ctrl()),
      wait_(wait),
      when_dropped_(std::move(when_dropped)) {}

  wait_answer(const wait_answer&) = delete;
  wait_answer& operator=(const wait_answer&) = delete;

  ~wait_answer() {
    if (!when_dropped_)
      return;
    send([dropped = std::move(when_dropped_)] {
      dropped({errc::model_failed, "it ended without an answer"});
    });
  }

  /// Delivers the answer. Call once.
  void operator()(std::function<void()> deliver) {
    when_dropped_ = nullptr;
    send(std::move(deliver));
  }

  /// Calls `use` with the lane, unless the lane has ended.
  template <class Use>
  void with_lane(const Use& use) {
    if (const auto lane = ref<lane_actor>(lane_.lock()))
      use(*lane);
  }

private:
  void send(std::function<void()> deliver) {
    const auto lane = ref<lane_actor>(lane_.lock());
    if (!lane)
      return;
    auto arrived = std::make_unique<answer>();
    arrived->wait = wait_;
    arrived->deliver = std::move(deliver);
    lane->tell(std::move(arrived));
  }

  caf::weak_actor_ptr lane_;
  std::uint64_t wait_;
  std::function<void(const error&)> when_dropped_;
};

} // namespace troupe::actors
