#include "troupe/core/processes/io_thread.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <signal.h>

#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::processes {

namespace asio = boost::asio;

// The thread shares it, since the thread may destroy the `io_thread`.
struct io_thread::core {
  asio::io_context context{1};
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>>
    guard{context.get_executor()};
  std::atomic<bool> has_ended{false};
};

namespace {

// Writing to a program that has ended then fails, and does not end this
// process.
void block_pipe_signals() {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
}

} // namespace

// Threads whose `io_thread` was destroyed on the thread itself. The end of the
// program waits for them, so that they end their processes.
class io_thread::left_threads {
public:
  ~left_threads() {
    std::unique_lock guard(mutex_);
    while (!threads_.empty()) {
      auto joined = std::move(threads_.back().second);
      threads_.pop_back();
      guard.unlock();
      joined.join();
      guard.lock();
    }
  }

  void add(std::shared_ptr<core> shared, std::thread thread) {
    const std::lock_guard guard(mutex_);
    std::erase_if(threads_, [](auto& each) {
      if (!each.first->has_ended)
        return false;
      each.second.join();
      return true;
    });
    threads_.emplace_back(std::move(shared), std::move(thread));
  }

  static left_threads& all() {
    static left_threads kept;
    return kept;
  }

private:
  std::mutex mutex_;
  std::vector<std::pair<std::shared_ptr<core>, std::thread>> threads_;
};

// A failed handler ends nothing but its own work: other servers and runs go on.
void io_thread::run(core& shared) {
  block_pipe_signals();
  for (;;)
    try {
      shared.context.run();
      break;
    } catch (const std::bad_alloc&) {
      end_without_memory();
    } catch (...) {
      continue;
    }
  shared.has_ended = true;
}

io_thread::io_thread() : core_(std::make_shared<core>()) {
  left_threads::all(); // Destroyed after this object if that is static.
  thread_ = std::thread([shared = core_] { run(*shared); });
}

io_thread::~io_thread() {
  if (thread_.joinable())
    finish();
}

void io_thread::finish() {
  if (thread_.get_id() == std::this_thread::get_id()) {
    core_->guard.reset();
    left_threads::all().add(core_, std::move(thread_));
  } else {
    post([shared = core_] { shared->guard.reset(); });
    thread_.join();
  }
}

void io_thread::post(std::function<void()> work) {
  asio::post(core_->context, std::move(work));
}

std::shared_ptr<void> io_thread::call_after(std::chrono::milliseconds delay,
                                            std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(core_->context, delay);
  // A timer that has expired cannot be cancelled any more: its handler is on
  // its way. It must not act on a process that was reaped meanwhile.
  timer->async_wait([work = std::move(work), watched = std::weak_ptr(timer)](
                      const boost::system::error_code& failed) {
    if (!failed && !watched.expired())
      work();
  });
  return timer;
}

asio::io_context& io_thread::context() noexcept {
  return core_->context;
}

} // namespace troupe::processes
