#include "troupe/server/http/io_threads.hpp"

#include "troupe/core/support/low_memory.hpp"
#include "troupe/server/http/io.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace troupe::serving {

struct io_threads::parts {
  parts(std::size_t limit, std::chrono::milliseconds precision)
    : connections_max(limit),
      tick(precision),
      guard(net::make_work_guard(io)),
      clock(io) {}

  const std::size_t connections_max;
  const std::chrono::milliseconds tick;
  net::io_context io;
  net::executor_work_guard<net::io_context::executor_type> guard;
  net::steady_timer clock;
  std::optional<net::thread_pool> blocking;
  std::vector<std::thread> threads;

  // Held for reading by calls from outside, for writing by `stop`.
  std::shared_mutex open_mutex;
  bool is_open = true; // Guarded by `open_mutex`.

  mutable std::mutex mutex;            // Guards the next five.
  std::list<net::steady_timer> timers; // Those of `call_after`.
  std::unordered_map<const live_connection*, std::weak_ptr<live_connection>>
    live;
  std::size_t requests = 0;
  std::uint64_t requests_begun = 0;
  std::condition_variable fewer_requests;

  std::atomic<bool> draining{false};
  std::atomic<bool> stopped{false};

  std::vector<std::shared_ptr<live_connection>> all() const {
    std::vector<std::shared_ptr<live_connection>> found;
    const std::lock_guard lock(mutex);
    for (const auto& [key, each] : live)
      if (auto held = each.lock())
        found.push_back(std::move(held));
    return found;
  }

  // The connections whose deadline has passed. Of the others no reference is
  // taken, so a look at many idle connections is cheap.
  std::vector<std::shared_ptr<live_connection>> expired() const {
    const auto now
      = std::chrono::steady_clock::now().time_since_epoch().count();
    std::vector<std::shared_ptr<live_connection>> found;
    const std::lock_guard lock(mutex);
    for (const auto& [key, each] : live)
      if (const auto until = key->deadline(); until != 0 && until <= now)
        if (auto held = each.lock())
          found.push_back(std::move(held));
    return found;
  }

  void start_timer(std::chrono::milliseconds delay,
                   std::function<void()>& done) {
    const std::lock_guard lock(mutex);
    const auto added = timers.emplace(timers.end(), io, delay);
    added->async_wait([this, added, done = std::move(done)](
                        const boost::system::error_code& failure) {
      {
        const std::lock_guard removal(mutex);
        timers.erase(added);
      }
      if (!failure)
        done();
    });
  }

  // An exception out of Beast ends its operation, and so the connection, which
  // nothing else holds.
  void run() {
    for (;;)
      try {
        io.run();
        return;
      } catch (const std::bad_alloc&) {
        throw;
      } catch (const std::exception&) {
        continue;
      }
  }

  void cancel_timers() {
    clock.cancel();
    const std::lock_guard lock(mutex);
    for (auto& each : timers)
      each.cancel();
  }

  void watch_deadlines() {
    clock.expires_after(tick);
    clock.async_wait([this](const boost::system::error_code& failure) {
      // A timer that has expired already is not cancelled any more.
      if (failure || stopped)
        return;
      for (const auto& each : expired())
        each->expire();
      watch_deadlines();
    });
  }
};

io_threads::io_threads(std::size_t connections_max,
                       std::chrono::milliseconds tick)
  : parts_(std::make_unique<parts>(connections_max, tick)) {}

io_threads::~io_threads() = default;

void io_threads::start(std::size_t threads, std::size_t blocking_threads) {
  parts_->blocking.emplace(blocking_threads);
  parts_->watch_deadlines();
  for (std::size_t index = 0; index < threads; ++index)
    parts_->threads.emplace_back(
      [this] { run_thread([this] { parts_->run(); }); });
}

net::io_context& io_threads::context() noexcept {
  return parts_->io;
}

void io_threads::work(std::function<void()> job) {
  while_open([this, &job] { net::post(*parts_->blocking, std::move(job)); });
}

void io_threads::call_after(std::chrono::milliseconds delay,
                            std::function<void()> done) {
  while_open([this, delay, &done] { parts_->start_timer(delay, done); });
}

bool io_threads::while_open(const std::function<void()>& give) {
  const std::shared_lock lock(parts_->open_mutex);
  if (parts_->is_open)
    give();
  return parts_->is_open;
}

bool io_threads::enter(const std::shared_ptr<live_connection>& added) {
  const std::lock_guard lock(parts_->mutex);
  if (parts_->draining || parts_->live.size() >= parts_->connections_max)
    return false;
  parts_->live.emplace(added.get(), added);
  return true;
}

void io_threads::leave(const live_connection& removed) {
  const std::lock_guard lock(parts_->mutex);
  parts_->live.erase(&removed);
}

std::size_t io_threads::connections() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->live.size();
}

std::uint64_t io_threads::requests() const {
  const std::lock_guard lock(parts_->mutex);
  return parts_->requests_begun;
}

void io_threads::begin_request() noexcept {
  const std::lock_guard lock(parts_->mutex);
  ++parts_->requests;
  ++parts_->requests_begun;
}

void io_threads::end_request() noexcept {
  const std::lock_guard lock(parts_->mutex);
  if (--parts_->requests == 0)
    parts_->fewer_requests.notify_all();
}

bool io_threads::await_requests(std::chrono::milliseconds limit) {
  std::unique_lock lock(parts_->mutex);
  return parts_->fewer_requests.wait_for(
    lock, limit, [this] { return parts_->requests == 0; });
}

bool io_threads::is_draining() const noexcept {
  return parts_->draining;
}

void io_threads::drain() {
  parts_->draining = true;
  for (const auto& each : parts_->all())
    each->drain();
}

// Nothing is stopped by force: the threads end when no operation is left. A
// handler that was never called would keep its connection, and the connection
// this object.
void io_threads::stop() {
  {
    const std::unique_lock lock(parts_->open_mutex);
    if (!std::exchange(parts_->is_open, false))
      return;
  }
  parts_->draining = true;
  parts_->stopped = true;
  for (const auto& each : parts_->all())
    each->close();
  net::post(parts_->io, [this] { parts_->cancel_timers(); });
  parts_->blocking->join();
  parts_->guard.reset();
  for (auto& each : parts_->threads)
    each.join();
}

} // namespace troupe::serving
