// The lanes that a workflow has started, one for each visit but functions that
// run alone, and the news that the workflow's coroutine waits for.

#pragma once

#include "troupe/actors/engine/ref.hpp"
#include "troupe/actors/letters/run.hpp"
#include "troupe/actors/runs/lane.hpp"

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace troupe::actors {

/// News about one visit.
struct node_news {
  /// The kinds of news.
  enum class kind : std::uint8_t {
    committed, ///< An event of the visit was committed.
    ended,     ///< Its lane has ended.
    due,       ///< The wait before its next attempt is over.
  };

  kind is = kind::ended;
  std::uint64_t visit = 0;
  /// The event of `committed`.
  event_ptr event = {};
  /// The outcome of `ended`.
  result<agent_end> outcome = agent_end();
  /// True if the lane was cancelled since its time limit had passed.
  bool is_late = false;
};

/// Owned by the lane of the workflow; used on its thread only.
class node_lanes {
public:
  explicit node_lanes(lane_actor& owner) : owner_(owner) {}

  /// Starts the lane of a visit. Its time limit does not count the waits that
  /// `node_visit::waited` tells.
  void start(std::uint64_t visit,
             lane_start start,
             std::optional<std::chrono::milliseconds> timeout);

  /// Makes `due` news about a visit after `delay`.
  void wake_after(std::uint64_t visit, std::chrono::nanoseconds delay);

  /// Cancels all lanes, and wakes the coroutine.
  void cancel(const error& reason);

  void receive(lane_ended& ended);
  void receive(node_committed& told);

  /// Number of lanes that run.
  std::size_t running() const noexcept { return running_.size(); }

  /// Number of waits that are not over.
  std::size_t waiting() const noexcept { return waiting_visits_; }

  /// Takes the oldest news; unset if there is none.
  std::optional<node_news> take();

  bool has_news() const noexcept { return !news_.empty(); }

  /// Makes `coroutine` wait until there is news or a cancellation.
  void wait(std::coroutine_handle<> coroutine) { coroutine_ = coroutine; }

  /// Takes the waiting coroutine, which has to be resumed, if there is news.
  std::coroutine_handle<> take_waiting();

private:
  // Cancels the lane of a visit after `delay`, and as much later as it has
  // waited. `known` is the time that it had waited when the delay was set.
  void end_after(std::chrono::nanoseconds delay,
                 std::uint64_t visit,
                 const ref<lane_actor>& lane,
                 std::chrono::nanoseconds known);

  lane_actor& owner_; // Owns this.
  std::map<std::uint64_t, ref<lane_actor>> running_;
  std::set<std::uint64_t> late_;
  std::size_t waiting_visits_ = 0;
  std::deque<node_news> news_;
  bool is_cancelled_ = false;
  std::coroutine_handle<> coroutine_;
};

} // namespace troupe::actors
