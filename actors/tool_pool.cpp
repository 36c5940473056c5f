#include "troupe/actors/tool_pool.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace troupe::actors {

struct tool_pool::shared : std::enable_shared_from_this<tool_pool::shared> {
  explicit shared(std::size_t threads_max)
    : work(queue.get_executor()),
      allowed(threads_max) {}

  boost::asio::io_context queue;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t allowed;     // Threads that may run; one more per lent place.
  std::size_t running = 0; // Threads that have not ended.
  std::size_t queued = 0;  // Work that is posted and has not ended.
  bool closed = false;

  void run();
};

namespace {

thread_local tool_pool* pool_here = nullptr;

} // namespace

void tool_pool::shared::run() {
  for (;;) {
    queue.run_one();
    const std::lock_guard guard(mutex);
    if (closed || running > allowed) {
      --running;
      ended.notify_all();
      return;
    }
  }
}

tool_pool::tool_pool(std::size_t threads_max)
  : shared_(std::make_shared<shared>(threads_max == 0 ? 1 : threads_max)) {}

tool_pool::~tool_pool() {
  join(SIZE_MAX);
}

void tool_pool::post(std::function<void()> work) {
  {
    const std::lock_guard guard(shared_->mutex);
    ++shared_->queued;
  }
  boost::asio::post(
    shared_->queue,
    [pool = this, state = shared_.get(), work = std::move(work)] {
      pool_here = pool;
      work();
      pool_here = nullptr;
      const std::lock_guard guard(state->mutex);
      --state->queued;
    });
  add_thread_if_needed();
}

void tool_pool::add_thread_if_needed() {
  const std::lock_guard guard(shared_->mutex);
  if (shared_->closed || shared_->running >= shared_->allowed
      || shared_->running >= shared_->queued)
    return;
  ++shared_->running;
  // Detached and counted: a tool that never returns must not hold up the end of
  // the process. The state outlives the thread.
  std::thread([state = shared_] { state->run(); }).detach();
}

void tool_pool::join(std::size_t abandoned) {
  std::unique_lock guard(shared_->mutex);
  if (!shared_->closed) {
    shared_->closed = true;
    shared_->queue.stop();
  }
  shared_->ended.wait(
    guard, [this, abandoned] { return shared_->running <= abandoned; });
}

void tool_pool::give_up() {
  {
    const std::lock_guard guard(shared_->mutex);
    ++shared_->allowed;
  }
  add_thread_if_needed();
}

void tool_pool::take_back() {
  const std::lock_guard guard(shared_->mutex);
  --shared_->allowed;
}

tool_pool::lend::lend() : pool_(pool_here) {
  if (pool_ != nullptr)
    pool_->give_up();
}

tool_pool::lend::~lend() {
  if (pool_ != nullptr)
    pool_->take_back();
}

} // namespace troupe::actors
