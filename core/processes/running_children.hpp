// The child processes of this process that have not been reaped.
//
// A child is in the list from its start on, and leaves it before it is reaped.
// So no signal reaches another process that has got the number of a former
// child.

#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <vector>

namespace troupe::processes {

/// Children that are the leaders of their process groups. Thread-safe.
class running_children {
public:
  /// The children that `start_program` starts. The object is never destroyed,
  /// since programs may be ended while this process ends.
  static running_children& all();

  /// Calls `spawn`, which starts a child and sets its id, and adds the child.
  /// Returns the result of `spawn`: 0, or the number of the failure. Returns
  /// `ECANCELED` and starts nothing after `end`. Throws `std::bad_alloc` before
  /// `spawn`. `spawn` must not throw.
  int start(const std::function<int(pid_t& child)>& spawn);

  /// Removes a child. Call it before the child is reaped.
  void remove(pid_t child) noexcept;

  /// Ends the children, with the processes of their groups: SIGTERM, and
  /// SIGKILL for those that are still in the list after `grace`; without a
  /// grace SIGKILL at once. Returns when the list is empty, or after SIGKILL.
  /// Starts are refused from now on; one under way is awaited for a second.
  void end(std::chrono::milliseconds grace) noexcept;

private:
  void signal_all(int signal) noexcept;

  std::mutex mutex_; // Guards the others.
  std::condition_variable changed_;
  std::vector<pid_t> running_;
  std::size_t starting_ = 0;
  bool has_ended_ = false;
};

} // namespace troupe::processes
