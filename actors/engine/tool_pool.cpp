#include "troupe/actors/engine/tool_pool.hpp"

#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace troupe::actors {

struct tool_pool::shared : std::enable_shared_from_this<tool_pool::shared> {
  shared(std::size_t threads_max, job_loop* on)
    : loop(on),
      work(queue.get_executor()),
      allowed(threads_max) {}

  job_loop* const loop;

  boost::asio::io_context queue;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t allowed;     // Threads that may run; one more per lent slot.
  std::size_t running = 0; // Threads that have not ended.
  std::size_t queued = 0;  // Work that is posted and has not ended.
  bool closed = false;
  std::deque<std::function<void()>> waiting; // On a loop, in place of `queue`.

  void run();
  void run_on_loop();
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

// One thread's work on a loop: jobs, one after another.
void tool_pool::shared::run_on_loop() {
  std::unique_lock guard(mutex);
  while (!closed && running <= allowed && !waiting.empty()) {
    auto next = std::move(waiting.front());
    waiting.pop_front();
    guard.unlock();
    next();
    // Destroyed without the lock: it may hold the last reference to the owner
    // of the pool.
    next = nullptr;
    guard.lock();
    --queued;
  }
  --running;
}

tool_pool::tool_pool(std::size_t threads_max, job_loop* loop)
  : shared_(
    std::make_shared<shared>(threads_max == 0 ? 1 : threads_max, loop)) {}

tool_pool::~tool_pool() {
  join(SIZE_MAX);
}

void tool_pool::post(std::function<void()> work) {
  std::unique_lock entry(shared_->mutex);
  ++shared_->queued;
  if (shared_->loop != nullptr) {
    shared_->waiting.push_back(std::move(work));
    entry.unlock();
    return add_thread_if_needed();
  }
  entry.unlock();
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
  if (shared_->loop != nullptr)
    return shared_->loop->post(job_kind::tool,
                               [state = shared_] { state->run_on_loop(); });
  // Detached and counted: a tool that never returns must not block the end of
  // the process. The thread keeps the shared state alive.
  std::thread([state = shared_] {
    run_thread([&state] { state->run(); });
  }).detach();
}

void tool_pool::join(std::size_t abandoned) {
  std::unique_lock guard(shared_->mutex);
  if (!shared_->closed) {
    shared_->closed = true;
    shared_->queue.stop();
  }
  if (shared_->loop != nullptr)
    return shared_->waiting.clear();
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
