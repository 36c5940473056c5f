#include "troupe/core/environment.hpp"

#include "troupe/core/support/low_memory.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/uuid/uuid.hpp>
#include <boost/uuid/uuid_io.hpp>

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>

namespace troupe {

namespace {

// The finalizer of splitmix64: every bit of the input affects every bit of the
// output.
std::uint64_t mix(std::uint64_t bits) {
  bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
  bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
  return bits ^ (bits >> 31U);
}

std::uint64_t entropy() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

class system_clock_environment : public environment {
public:
  system_clock_environment()
    : ids_(entropy(), entropy()),
      work_(timers_->get_executor()),
      thread_(
        [timers = timers_] { run_thread([&timers] { timers->run(); }); }) {}

  ~system_clock_environment() override {
    timers_->stop();
    // A timer's callback may have destroyed the last owner on this thread.
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

  timestamp now() override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now());
  }

  std::chrono::nanoseconds elapsed() override {
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  std::string new_id() override { return ids_.next(); }

  void call_after(std::chrono::nanoseconds delay,
                  std::function<void()> done) override {
    auto timer = std::make_shared<boost::asio::steady_timer>(*timers_, delay);
    timer->async_wait(
      [timer, done = std::move(done)](boost::system::error_code) { done(); });
  }

private:
  id_source ids_;
  // Shared with the thread, which may outlive this object.
  std::shared_ptr<boost::asio::io_context> timers_
    = std::make_shared<boost::asio::io_context>();
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
    work_;
  std::thread thread_;
};

} // namespace

std::string id_source::next() {
  const auto count = count_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t step = count * 0x9e3779b97f4a7c15U;
  const std::uint64_t halves[]
    = {mix(high_ + step), mix(low_ ^ (step + high_))};
  boost::uuids::uuid id{};
  std::memcpy(id.data, halves, sizeof(id.data));
  id.data[6] = static_cast<std::uint8_t>((id.data[6] & 0x0fU) | 0x40U);
  id.data[8] = static_cast<std::uint8_t>((id.data[8] & 0x3fU) | 0x80U);
  return boost::uuids::to_string(id);
}

std::shared_ptr<environment> system_environment() {
  return std::make_shared<system_clock_environment>();
}

struct simulated_environment::timers {
  mutable std::mutex mutex;
  std::chrono::nanoseconds elapsed{0};
  std::multimap<std::chrono::nanoseconds, std::function<void()>> waiting;
};

simulated_environment::simulated_environment(std::uint64_t seed)
  : ids_(mix(seed), mix(seed + 1)),
    timers_(std::make_unique<timers>()) {}

simulated_environment::~simulated_environment() = default;

timestamp simulated_environment::now() {
  const std::lock_guard guard(timers_->mutex);
  // A day in 2026, because the epoch means "not set".
  return timestamp(
    std::chrono::seconds(1'780'000'000)
    + std::chrono::duration_cast<std::chrono::microseconds>(timers_->elapsed));
}

std::string simulated_environment::new_id() {
  return ids_.next();
}

void simulated_environment::call_after(std::chrono::nanoseconds delay,
                                       std::function<void()> done) {
  const std::lock_guard guard(timers_->mutex);
  timers_->waiting.emplace(timers_->elapsed + delay, std::move(done));
}

void simulated_environment::advance(std::chrono::nanoseconds step) {
  std::unique_lock guard(timers_->mutex);
  const auto until = timers_->elapsed + step;
  while (!timers_->waiting.empty()
         && timers_->waiting.begin()->first <= until) {
    auto next = timers_->waiting.extract(timers_->waiting.begin());
    timers_->elapsed = std::max(timers_->elapsed, next.key());
    guard.unlock();
    next.mapped()();
    guard.lock();
  }
  timers_->elapsed = until;
}

std::size_t simulated_environment::waiting() const {
  const std::lock_guard guard(timers_->mutex);
  return timers_->waiting.size();
}

} // namespace troupe
