// Lets at most so many in at a time; the others wait in order, without a
// thread.

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

namespace troupe {

/// Thread-safe.
class turnstile {
public:
  explicit turnstile(std::size_t inside_max) : inside_max_(inside_max) {}

  turnstile(const turnstile&) = delete;
  turnstile& operator=(const turnstile&) = delete;

  /// Calls `go` once there is room: here and now, or in the `leave` that makes
  /// it. Whoever is in leaves once.
  void enter(std::function<void()> go);

  void leave();

private:
  const std::size_t inside_max_;
  std::mutex mutex_;
  std::size_t inside_ = 0;
  std::deque<std::function<void()>> waiting_;
};

} // namespace troupe
