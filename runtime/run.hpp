// One run of an agent on a session, as the caller holds it: a cursor on the
// events that it commits.

#pragma once

#include "troupe/contexts/run_options.hpp"
#include "troupe/core/event.hpp"
#include "troupe/runtime/session_service.hpp"

#include <chrono>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

namespace detail {
class run_control;
}

/// Events are delivered after they are committed, in the order of the session's
/// log; partial ones (streaming) are dropped, oldest first, when nobody takes
/// them. Members are thread-safe, but events go to one consumer. Dropping the
/// handle cancels the run without waiting; `detach` lets it go on.
class run {
public:
  explicit run(std::shared_ptr<detail::run_control> control);
  run(run&&) noexcept;
  run& operator=(run&&) noexcept;
  ~run();

  const std::string& invocation_id() const noexcept;

  /// The next event, or null at the end. Blocks. Fails with the run's error,
  /// once, after its last event.
  result<event_ptr> next();
  void next(completion<event_ptr> done);

  auto next_async() {
    auto start = [this](completion<event_ptr> done) { next(std::move(done)); };
    return pending<event_ptr, decltype(start)>(std::move(start));
  }

  /// Waits for the end; events not taken are dropped.
  result<void> wait();
  /// Calls `done` at the end; events stay to be taken.
  void wait(completion<void> done);

  auto wait_async() {
    auto start = [this](completion<void> done) { wait(std::move(done)); };
    return pending<void, decltype(start)>(std::move(start));
  }

  /// The ids of the calls that the run has left to answer: of long-running
  /// tools, and of questions to the user. A later run on the session, whose
  /// message holds a `function_response` to each, goes on where this one has
  /// paused. Empty before the end, and when nothing is open.
  std::vector<std::string> waits_for() const;

  /// Asks the run to end with `errc::cancelled`. Returns at once; may be called
  /// at any time, also from a signal handler's thread. What was committed
  /// stays.
  void cancel();

  /// Lets the run go on without this handle.
  void detach();

  /// For range-for: blocks for each event and throws the run's `troupe::error`
  /// at the end.
  class iterator {
  public:
    using value_type = event;
    using difference_type = std::ptrdiff_t;

    iterator() = default;

    explicit iterator(run* source) : source_(source) { ++*this; }

    const event& operator*() const { return *current_; }

    const event* operator->() const { return current_.get(); }

    iterator& operator++() {
      current_ = source_->next().value();
      return *this;
    }

    void operator++(int) { ++*this; }

    friend bool operator==(const iterator& left, std::default_sentinel_t) {
      return left.current_ == nullptr;
    }

  private:
    run* source_ = nullptr;
    event_ptr current_;
  };

  iterator begin() { return iterator(this); }

  std::default_sentinel_t end() const noexcept { return {}; }

private:
  std::shared_ptr<detail::run_control> control_;
};

} // namespace troupe
