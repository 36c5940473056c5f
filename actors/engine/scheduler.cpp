#include "troupe/actors/engine/scheduler.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/logger.hpp>

// CAF's worker finds each job's actor id by a dynamic_cast per job, to tag log
// lines. The distribution's CAF is built without logging, so nothing reads the
// tag: the macro is replaced.
#pragma push_macro("CAF_PUSH_AID_FROM_PTR")
#undef CAF_PUSH_AID_FROM_PTR
#define CAF_PUSH_AID_FROM_PTR(unused) static_cast<void>(0)
#include <caf/scheduler/worker.hpp>
#pragma pop_macro("CAF_PUSH_AID_FROM_PTR")

#include <caf/detail/thread_safe_actor_clock.hpp>
#include <caf/policy/unprofiled.hpp>
#include <caf/scheduler/coordinator.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::actors {

namespace {

// Rounds in which an idle worker looks for jobs before it sleeps. In the first
// ones, some microseconds, it keeps its core; in the others, some tens of
// microseconds, it yields the core. Together they take about as long as a
// wake-up.
constexpr int looks_before_yield = 64;
constexpr int looks_before_sleep = 160;

void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

class job_queue {
public:
  /// Adds a job; returns the number of jobs in the queue.
  std::size_t push(caf::resumable* job) {
    const std::lock_guard guard(mutex_);
    const auto count = size_.load(std::memory_order_relaxed);
    if (count == ring_.size())
      grow(count);
    ring_[(first_ + count) & (ring_.size() - 1)] = job;
    // Sequentially consistent with `sleepers`: either the pusher sees the
    // sleeper, or the sleeper sees the job. With a weaker order both could miss
    // the other, and the job would wait for the next push.
    size_.store(count + 1, std::memory_order_seq_cst);
    return count + 1;
  }

  caf::resumable* pop() {
    if (size_.load(std::memory_order_seq_cst) == 0)
      return nullptr;
    const std::lock_guard guard(mutex_);
    const auto count = size_.load(std::memory_order_relaxed);
    if (count == 0)
      return nullptr;
    auto* job = ring_[first_];
    first_ = (first_ + 1) & (ring_.size() - 1);
    size_.store(count - 1, std::memory_order_relaxed);
    return job;
  }

private:
  void grow(std::size_t count) {
    std::vector<caf::resumable*> larger(std::max<std::size_t>(64, count * 2));
    for (std::size_t index = 0; index < count; ++index)
      larger[index] = ring_[(first_ + index) & (ring_.size() - 1)];
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::mutex mutex_;
  std::vector<caf::resumable*> ring_; // Its size is a power of two.
  std::size_t first_ = 0;
  std::atomic<std::size_t> size_{0};
};

struct current {
  void* coordinator = nullptr;
  void* worker = nullptr;
  const caf::actor_system* system = nullptr;
};

thread_local current here;
thread_local bool in_brief_job = false;
thread_local bool ending_without_timeouts = false;

struct fair_policy : caf::policy::unprofiled {
  struct coordinator_data {
    explicit coordinator_data(caf::scheduler::abstract_coordinator*) {}

    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::condition_variable work;
    std::atomic<int> sleepers{0};
  };

  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator*) {}

    worker_data(const worker_data&) {}

    alignas(64) job_queue jobs;
  };

  template <class Worker>
  static void push(Worker* worker, caf::resumable* job) {
    const auto count = worker->data().jobs.push(job);
    if (count == 1 && in_brief_job && here.worker == worker)
      return;
    auto& shared = worker->parent()->data();
    if (shared.sleepers.load(std::memory_order_seq_cst) == 0)
      return;
    // A sleeper holds the mutex from its last look until it waits. Locking it
    // here makes sure that the notification comes after that.
    { const std::lock_guard guard(shared.mutex); }
    shared.work.notify_one();
  }

  template <class Coordinator>
  void central_enqueue(Coordinator* coordinator, caf::resumable* job) {
    using worker_type = typename Coordinator::worker_type;
    auto* worker
      = here.coordinator == coordinator
          ? static_cast<worker_type*>(here.worker)
          : coordinator->worker_by_id(
            coordinator->data().next.fetch_add(1, std::memory_order_relaxed)
            % coordinator->num_workers());
    push(worker, job);
  }

  template <class Worker>
  void external_enqueue(Worker* worker, caf::resumable* job) {
    push(worker, job);
  }

  template <class Worker>
  void internal_enqueue(Worker* worker, caf::resumable* job) {
    push(worker, job);
  }

  template <class Worker>
  void resume_job_later(Worker* worker, caf::resumable* job) {
    push(worker, job);
  }

  template <class Worker>
  static caf::resumable* find(Worker* worker) {
    if (auto* job = worker->data().jobs.pop())
      return job;
    auto* all = worker->parent();
    for (std::size_t step = 1; step < all->num_workers(); ++step) {
      auto* other
        = all->worker_by_id((worker->id() + step) % all->num_workers());
      if (auto* job = other->data().jobs.pop())
        return job;
    }
    return nullptr;
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* worker) {
    if (here.worker != worker) {
      here = {worker->parent(), worker, &worker->system()};
      // With a logger set, each job pays for two locked look-ups, for log lines
      // that are not compiled in.
      caf::logger::set_current_actor_system(nullptr);
    }
    for (int look = 0; look < looks_before_sleep; ++look) {
      if (auto* job = find(worker))
        return job;
      if (look < looks_before_yield)
        pause();
      else
        std::this_thread::yield();
    }
    auto& shared = worker->parent()->data();
    std::unique_lock guard(shared.mutex);
    // Counted before the last look: a pusher that sees no sleeper has stored
    // its job already, so this look finds the job.
    shared.sleepers.fetch_add(1, std::memory_order_seq_cst);
    caf::resumable* job = nullptr;
    while ((job = find(worker)) == nullptr)
      shared.work.wait(guard);
    shared.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    return job;
  }

  template <class Worker, class Visit>
  void foreach_resumable(Worker* worker, Visit visit) {
    while (auto* job = worker->data().jobs.pop())
      visit(job);
  }

  template <class Coordinator, class Visit>
  void foreach_central_resumable(Coordinator*, Visit) {}
};

// CAF's clock with one difference. Each actor that ends asks the clock to
// forget its timeouts, which wakes the clock's thread. Our actors have no
// timeouts, so `no_timeouts` suppresses that.
class quiet_clock final : public caf::detail::thread_safe_actor_clock {
public:
  explicit quiet_clock(caf::detail::thread_safe_actor_clock& inner)
    : inner_(inner) {}

  time_point now() const noexcept override { return inner_.now(); }

  void set_ordinary_timeout(time_point time,
                            caf::abstract_actor* self,
                            caf::atom_value type,
                            std::uint64_t id) override {
    inner_.set_ordinary_timeout(time, self, type, id);
  }

  void set_multi_timeout(time_point time,
                         caf::abstract_actor* self,
                         caf::atom_value type,
                         std::uint64_t id) override {
    inner_.set_multi_timeout(time, self, type, id);
  }

  void set_request_timeout(time_point time,
                           caf::abstract_actor* self,
                           caf::message_id id) override {
    inner_.set_request_timeout(time, self, id);
  }

  void cancel_ordinary_timeout(caf::abstract_actor* self,
                               caf::atom_value type) override {
    inner_.cancel_ordinary_timeout(self, type);
  }

  void cancel_request_timeout(caf::abstract_actor* self,
                              caf::message_id id) override {
    inner_.cancel_request_timeout(self, id);
  }

  void cancel_timeouts(caf::abstract_actor* self) override {
    if (!ending_without_timeouts)
      inner_.cancel_timeouts(self);
  }

  void schedule_message(time_point time,
                        caf::strong_actor_ptr receiver,
                        caf::mailbox_element_ptr content) override {
    inner_.schedule_message(time, std::move(receiver), std::move(content));
  }

  void schedule_message(time_point time,
                        caf::group target,
                        caf::strong_actor_ptr sender,
                        caf::message content) override {
    inner_.schedule_message(
      time, std::move(target), std::move(sender), std::move(content));
  }

  void cancel_all() override { inner_.cancel_all(); }

private:
  caf::detail::thread_safe_actor_clock& inner_;
};

class fair_scheduler : public caf::scheduler::coordinator<fair_policy> {
public:
  explicit fair_scheduler(caf::actor_system& system)
    : coordinator(system),
      quiet_(coordinator::clock()) {}

  quiet_clock& clock() noexcept override { return quiet_; }

  static caf::actor_system::module* make(caf::actor_system& system,
                                         caf::detail::type_list<>) {
    return new fair_scheduler(system);
  }

private:
  quiet_clock quiet_;
};

} // namespace

void install_scheduler(caf::actor_system_config& config, std::size_t threads) {
  if (threads == 0)
    threads = std::max(1U, std::thread::hardware_concurrency());
  config.set("scheduler.max-threads", threads);
  config.load<fair_scheduler>();
}

brief_job::brief_job() noexcept {
  in_brief_job = true;
}

brief_job::~brief_job() {
  in_brief_job = false;
}

no_timeouts::no_timeouts() noexcept {
  ending_without_timeouts = true;
}

no_timeouts::~no_timeouts() {
  ending_without_timeouts = false;
}

bool is_worker_thread() noexcept {
  return here.worker != nullptr;
}

bool is_worker_of(const caf::actor_system& system) noexcept {
  return here.system == &system;
}

void schedule(caf::actor_system& system, caf::resumable* job) {
  system.scheduler().enqueue(job);
}

} // namespace troupe::actors
