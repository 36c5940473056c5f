// A bounded pool of threads for tools, since tools may block. A tool that
// blocks on the runtime does not count against the bound meanwhile.

#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace troupe::actors {

class job_loop;

class tool_pool {
public:
  /// Starts threads only when there is work; with a loop, none.
  explicit tool_pool(std::size_t threads_max, job_loop* loop = nullptr);

  /// Stops like `join(SIZE_MAX)`: waits for no thread.
  ~tool_pool();

  tool_pool(const tool_pool&) = delete;
  tool_pool& operator=(const tool_pool&) = delete;

  /// Runs `work` on one of the threads; `work` must not throw.
  void post(std::function<void()> work);

  /// Drops work that has not started, and waits until at most `abandoned`
  /// threads still run. Those are left behind. Does not wait on a loop.
  void join(std::size_t abandoned = 0);

  /// Stops counting a thread that does not return, so that another may start.
  /// `take_back` counts it again.
  void give_up();
  void take_back();

  /// While it lives, the calling pool thread, which waits for the runtime, does
  /// not count against the bound. No effect on other threads.
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
