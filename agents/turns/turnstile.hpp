// A limit of concurrent work. Work above the limit waits in order, without
// a thread.

#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <mutex>

namespace troupe {

/// Lets a limited number of pieces of work run at the same time. Thread-safe.
class turnstile {
public:
  /// Limits the work inside to `inside_max`; 0 lets none in.
  explicit turnstile(std::size_t inside_max) : inside_max_(inside_max) {}

  turnstile(const turnstile&) = delete;
  turnstile& operator=(const turnstile&) = delete;

  /// Calls `go` as soon as the limit allows it: in this call, or in a later
  /// `leave`. The work calls `leave` once when it ends.
  void enter(std::function<void()> go);

  /// Ends one piece of work. If others wait, calls the `go` of the first one
  /// before it returns.
  void leave();

private:
  const std::size_t inside_max_;
  std::mutex mutex_;
  std::size_t inside_ = 0;
  std::list<std::function<void()>> waiting_;
};

} // namespace troupe
