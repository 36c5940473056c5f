// The threads on which tools run, since tools may block. Bounded; a tool that
// blocks on the runtime lends its place.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::actors {

class job_loop;

class tool_pool {
public:
  /// Starts no thread before there is work, and none at all with a loop.
  explicit tool_pool(std::size_t threads_max, job_loop* loop = nullptr);

  /// Ends like `join`.
  ~tool_pool();

  tool_pool(const tool_pool&) = delete;
  tool_pool& operator=(const tool_pool&) = delete;

  /// Runs `work` on one of the threads; `work` must not throw.
  void post(std::function<void()> work);

  /// Drops what has not started and waits for what runs, at most `abandoned` of
  /// them excepted: those threads are left behind. On a loop it does not wait.
  void join(std::size_t abandoned = 0);

  /// Gives up on a thread that does not come back: another may take its place,
  /// until `take_back`.
  void give_up();
  void take_back();

  /// While it lives, a pool thread that waits for the runtime does not count
  /// against the limit. Does nothing elsewhere.
  class lend {
  public:
    lend();
    ~lend();
    lend(const lend&) = delete;
    lend& operator=(const lend&) = delete;

  private:
    tool_pool* pool_;
  };

private:
  struct shared;

  void add_thread_if_needed();

  std::shared_ptr<shared> shared_;
};

} // namespace troupe::actors
