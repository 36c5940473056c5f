#include "troupe/core/processes/running_children.hpp"

#include "troupe/core/processes/child_process.hpp"

#include <signal.h>

#include <cerrno>

namespace troupe::processes {

running_children& running_children::all() {
  static auto& kept = *new running_children;
  return kept;
}

// The lock is not held during `spawn`: a file system that hangs must not keep
// `end` waiting for ever.
int running_children::start(const std::function<int(pid_t& child)>& spawn) {
  {
    const std::lock_guard guard(mutex_);
    if (has_ended_)
      return ECANCELED;
    // A child that has started is then added without an allocation.
    running_.reserve(running_.size() + starting_ + 1);
    ++starting_;
  }
  pid_t child = -1;
  const int number = spawn(child);
  const std::lock_guard guard(mutex_);
  --starting_;
  if (number == 0)
    running_.push_back(child);
  changed_.notify_all();
  return number;
}

void running_children::remove(pid_t child) noexcept {
  const std::lock_guard guard(mutex_);
  std::erase(running_, child);
  changed_.notify_all();
}

void running_children::end(std::chrono::milliseconds grace) noexcept {
  constexpr std::chrono::seconds start_max{1};
  std::unique_lock guard(mutex_);
  has_ended_ = true;
  changed_.wait_for(guard, start_max, [this] { return starting_ == 0; });
  if (grace.count() > 0) {
    signal_all(SIGTERM);
    changed_.wait_for(guard, grace, [this] { return running_.empty(); });
  }
  signal_all(SIGKILL);
}

void running_children::signal_all(int signal) noexcept {
  for (const auto child : running_)
    signal_group(child, signal);
}

} // namespace troupe::processes
