#include "troupe/actors/engine/scheduler.hpp"

#include "troupe/actors/engine/spin.hpp"
#include "troupe/core/support/low_memory.hpp"

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
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace troupe::actors {

namespace {

// Number of rounds in which an idle worker looks for jobs before it sleeps.
// During the first rounds, some microseconds, it keeps its core. During the
// others, some tens of microseconds, it yields the core. Together they take
// about as long as a wake-up.
constexpr int looks_before_yield = 64;
constexpr int looks_before_sleep = 160;

// Jobs that a worker takes from its own slot before it looks into the queues,
// so that two actors that wake each other do not keep others waiting.
constexpr int next_in_a_row_max = 16;

// Once in this number of jobs, a worker looks into the shared queue first.
constexpr unsigned shared_first_every = 8;

// Once in this number of jobs, a worker looks first for jobs that run behind
// all others, so that they never wait forever. Not in the round of the shared
// queue.
constexpr unsigned behind_first_every = 16;
constexpr unsigned behind_round = 15;

// A neighbour takes jobs of a worker only if the worker has this many queued,
// or has worked on the same job during this many looks of the neighbour. A few
// short jobs are done sooner by the worker that has their data in its cache.
constexpr std::size_t jobs_worth_taking = 8;
constexpr int looks_of_a_long_job = 32;

// Period in which one sleeping worker looks for jobs behind a long one.
constexpr std::chrono::microseconds watch_period{500};

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

  std::size_t size() const noexcept {
    return size_.load(std::memory_order_relaxed);
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

    job_queue jobs;   // Jobs of threads that are no workers.
    job_queue behind; // Jobs that run when there are no others.
    std::mutex mutex;
    std::condition_variable work;
    std::atomic<int> sleepers{0};
    // True if one of the sleepers looks for jobs now and then.
    std::atomic<bool> watched{false};
    // True if the next sleeper that wakes up looks for jobs for a while before
    // it sleeps again. That sleeper clears it.
    std::atomic<bool> help_is_wanted{false};
  };

  struct worker_data {
    explicit worker_data(caf::scheduler::abstract_coordinator*) {}

    worker_data(const worker_data&) {}

    bool has_jobs() const noexcept {
      return next.load(std::memory_order_relaxed) != nullptr || jobs.size() > 0;
    }

    // The job that runs next. Filled by the worker alone; emptied by it, or by
    // a neighbour while the worker runs a long job.
    alignas(64) std::atomic<caf::resumable*> next{nullptr};
    // Number of jobs that the worker has begun.
    std::atomic<std::uint64_t> begun{0};
    int next_in_a_row = 0;
    alignas(64) job_queue jobs;
  };

  // The job that a neighbour works on, as an idle worker sees it.
  struct sighting {
    std::uint64_t begun = 0;
    int looks = 0;
  };

  static void wake_one(coordinator_data& shared) {
    if (shared.sleepers.load(std::memory_order_seq_cst) == 0)
      return;
    // A sleeper holds the mutex from its last look until it waits. Locking it
    // here makes sure that the notification comes after that.
    { const std::lock_guard guard(shared.mutex); }
    shared.work.notify_one();
  }

  template <class Coordinator>
  void central_enqueue(Coordinator* coordinator, caf::resumable* job) {
    if (here.coordinator == coordinator)
      return push(static_cast<typename Coordinator::worker_type*>(here.worker),
                  job);
    coordinator->data().jobs.push(job);
    wake_one(coordinator->data());
  }

  template <class Worker>
  void external_enqueue(Worker* worker, caf::resumable* job) {
    worker->parent()->data().jobs.push(job);
    wake_one(worker->parent()->data());
  }

  template <class Worker>
  void internal_enqueue(Worker* worker, caf::resumable* job) {
    push(worker, job);
  }

  // A job that has used up its activation is queued behind the other jobs of
  // its worker.
  template <class Worker>
  void resume_job_later(Worker* worker, caf::resumable* job) {
    worker->data().jobs.push(job);
  }

  // Called by the worker itself.
  template <class Worker>
  static void push(Worker* worker, caf::resumable* job) {
    auto& mine = worker->data();
    if (mine.next.load(std::memory_order_relaxed) == nullptr)
      // Release: a neighbour that takes the job sees what its sender wrote.
      mine.next.store(job, std::memory_order_release);
    else if (mine.jobs.push(job) >= jobs_worth_taking)
      return wake_one(worker->parent()->data());
    if (!in_brief_job)
      watch(worker);
  }

  // One such job of a worker waits for the worker itself. Further ones are
  // worth a wake-up.
  template <class Coordinator>
  static void push_behind(Coordinator* coordinator, caf::resumable* job) {
    auto& shared = coordinator->data();
    const auto count = shared.behind.push(job);
    if (here.coordinator != coordinator || count > 1)
      wake_one(shared);
  }

  // Makes sure that a neighbour notices if the worker's jobs wait for long.
  template <class Worker>
  static void watch(Worker* worker) {
    auto& shared = worker->parent()->data();
    if (!shared.watched.load(std::memory_order_relaxed))
      wake_one(shared);
  }

  // Lets a sleeper look for the jobs that this worker makes from now on.
  template <class Worker>
  static void call_for_help(Worker* worker) {
    auto& shared = worker->parent()->data();
    if (shared.sleepers.load(std::memory_order_relaxed) == 0)
      return;
    shared.help_is_wanted.store(true, std::memory_order_relaxed);
    wake_one(shared);
  }

  static caf::resumable* take_next(worker_data& from) {
    if (from.next.load(std::memory_order_relaxed) == nullptr)
      return nullptr;
    return from.next.exchange(nullptr, std::memory_order_acq_rel);
  }

  // A job of the worker itself, or of no worker.
  template <class Worker>
  static caf::resumable* find_own(Worker* worker) {
    auto& mine = worker->data();
    auto& shared = worker->parent()->data();
    const auto begun = mine.begun.load(std::memory_order_relaxed);
    if (begun % shared_first_every == 0)
      if (auto* job = shared.jobs.pop())
        return job;
    if (begun % behind_first_every == behind_round)
      if (auto* job = shared.behind.pop())
        return job;
    if (mine.next_in_a_row < next_in_a_row_max)
      if (auto* job = take_next(mine)) {
        ++mine.next_in_a_row;
        return job;
      }
    mine.next_in_a_row = 0;
    if (auto* job = mine.jobs.pop())
      return job;
    if (auto* job = take_next(mine))
      return job;
    return shared.jobs.pop();
  }

  // A job of a neighbour that has many, or is busy with a long one.
  template <class Worker>
  static caf::resumable* find_elsewhere(Worker* worker,
                                        std::vector<sighting>& seen,
                                        int looks_of_long) {
    auto* all = worker->parent();
    seen.resize(all->num_workers());
    for (std::size_t step = 1; step < all->num_workers(); ++step) {
      const auto at = (worker->id() + step) % all->num_workers();
      auto& other = all->worker_by_id(at)->data();
      const auto begun = other.begun.load(std::memory_order_relaxed);
      auto& known = seen[at];
      if (known.begun != begun)
        known = {begun, 0};
      const bool is_long = ++known.looks > looks_of_long;
      if (is_long || other.jobs.size() >= jobs_worth_taking)
        if (auto* job = other.jobs.pop())
          return job;
      if (is_long)
        if (auto* job = take_next(other))
          return job;
    }
    return nullptr;
  }

  // The job of a worker that has none of its own.
  template <class Worker>
  static caf::resumable*
  find_other(Worker* worker, std::vector<sighting>& seen, int looks_of_long) {
    if (auto* job = find_elsewhere(worker, seen, looks_of_long))
      return job;
    return worker->parent()->data().behind.pop();
  }

  template <class Worker>
  caf::resumable* dequeue(Worker* worker) {
    if (here.worker != worker) {
      here = {worker->parent(), worker, &worker->system()};
      with_memory_or_end(
        [&] { seen_.reserve(worker->parent()->num_workers()); });
      // With a logger set, each job would make two locked look-ups for log
      // lines that are not compiled in.
      caf::logger::set_current_actor_system(nullptr);
    }
    auto* job = find_own(worker);
    while (job == nullptr)
      if (job = look(worker); job == nullptr)
        job = sleep(worker);
    auto& begun = worker->data().begun;
    begun.store(begun.load(std::memory_order_relaxed) + 1,
                std::memory_order_relaxed);
    return job;
  }

  template <class Worker>
  caf::resumable* look(Worker* worker) {
    seen_.clear();
    for (int look = 0; look < looks_before_sleep; ++look) {
      if (auto* job = find_own(worker))
        return job;
      if (auto* job = find_other(worker, seen_, looks_of_a_long_job))
        return job;
      if (look < looks_before_yield)
        spin_pause();
      else
        std::this_thread::yield();
    }
    return nullptr;
  }

  // Sleeps until there is a job, or until another worker asks for help: then it
  // returns null. While other workers are awake, one of the sleepers is the
  // watcher: it looks now and then for jobs behind a long one.
  // A watcher that gets a job wakes another sleeper, which watches from then
  // on.
  template <class Worker>
  caf::resumable* sleep(Worker* worker) {
    auto& shared = worker->parent()->data();
    const auto count = static_cast<int>(worker->parent()->num_workers());
    seen_.clear();
    std::unique_lock guard(shared.mutex);
    // Counted before the last look: a pusher that sees no sleeper has stored
    // its job already, so this look finds the job.
    auto asleep = shared.sleepers.fetch_add(1, std::memory_order_seq_cst) + 1;
    caf::resumable* job = nullptr;
    bool has_watched = false;
    while (
      (job = find_own(worker)) == nullptr
      && (job = find_other(worker, seen_, 1)) == nullptr
      && !shared.help_is_wanted.exchange(false, std::memory_order_relaxed)) {
      if (asleep < count && !shared.watched.load(std::memory_order_relaxed)) {
        shared.watched.store(true, std::memory_order_relaxed);
        shared.work.wait_for(guard, watch_period);
        shared.watched.store(false, std::memory_order_relaxed);
        has_watched = true;
      } else {
        shared.work.wait(guard);
      }
      asleep = shared.sleepers.load(std::memory_order_relaxed);
    }
    const auto left
      = shared.sleepers.fetch_sub(1, std::memory_order_seq_cst) - 1;
    if (has_watched && left > 0)
      shared.work.notify_one();
    return job;
  }

  template <class Worker, class Visit>
  void foreach_resumable(Worker* worker, Visit visit) {
    if (auto* job = take_next(worker->data()))
      visit(job);
    while (auto* job = worker->data().jobs.pop())
      visit(job);
  }

  template <class Coordinator, class Visit>
  void foreach_central_resumable(Coordinator* coordinator, Visit visit) {
    while (auto* job = coordinator->data().jobs.pop())
      visit(job);
    while (auto* job = coordinator->data().behind.pop())
      visit(job);
  }

private:
  std::vector<sighting> seen_;
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

void start_long_job() noexcept {
  using worker = caf::scheduler::worker<fair_policy>;
  if (auto* mine = static_cast<worker*>(here.worker);
      mine != nullptr
      && (mine->data().has_jobs() || mine->parent()->data().behind.size() > 0))
    fair_policy::watch(mine);
}

void ask_for_help() noexcept {
  using worker = caf::scheduler::worker<fair_policy>;
  if (auto* mine = static_cast<worker*>(here.worker); mine != nullptr)
    fair_policy::call_for_help(mine);
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

void schedule_behind(caf::actor_system& system, caf::resumable* job) {
  auto* const used = &system.scheduler();
  if (auto* const fair = dynamic_cast<fair_scheduler*>(used))
    fair_policy::push_behind<caf::scheduler::coordinator<fair_policy>>(fair,
                                                                       job);
  else
    used->enqueue(job);
}

} // namespace troupe::actors
