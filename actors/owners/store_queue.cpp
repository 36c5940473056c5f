// Invariants of the store's queue:
//
// - Commits are written in the order in which they were pushed. A commit whose
//   climb is still under way holds its place, and the queue waits there.
// - One thread writes at a time (`writing_`). When it ends, it looks for
//   letters that came meanwhile, so none of them waits. See store_writes.cpp.

#include "troupe/actors/owners/store_queue.hpp"

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/actors/parts/guarded.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/agents/turns/recovery.hpp"
#include "troupe/core/support/low_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

namespace troupe::actors {

namespace {

// The creation is the first change of its session.
bool makes_fork(const commit& decided) noexcept {
  return !decided.changes.empty() && decided.changes.front().past;
}

bool is_ready(const letter& sent) noexcept {
  const auto* const decided = as<commit>(sent);
  return decided == nullptr || decided->filled;
}

} // namespace

store_queue::store_queue(std::shared_ptr<store> kept, setup& shared)
  : store_(std::move(kept)),
    parts_(*store_),
    shared_(shared),
    part_losses_(parts_.count()) {
  if (shared_.loop != nullptr)
    return;
  try {
    writer_ = std::thread([this] { run_thread([this] { run_writer(); }); });
    for (std::size_t index = 0; index < readers_max; ++index)
      readers_.emplace_back([this] { run_thread([this] { run_reader(); }); });
  } catch (...) {
    end_threads(); // A joinable thread would end the program.
    throw;
  }
}

store_queue::~store_queue() {
  assert(!writer_.joinable() && "a store's queue is stopped first");
}

// -- entry --------------------------------------------------------------------

void store_queue::push(letter_ptr sent) {
  const std::lock_guard guard(mutex_);
  queue_.push_back(std::move(sent));
  shared_.waits.start();
  wake_writer();
}

void store_queue::push(letter_list sent) {
  const std::lock_guard guard(mutex_);
  while (!sent.empty())
    queue_.push_back(sent.pop_front());
  shared_.waits.start();
  wake_writer();
}

void store_queue::fill(commit& decided) {
  const std::lock_guard guard(mutex_);
  decided.filled = true;
  wake_writer();
}

void store_queue::read(std::function<void(store&)> job) {
  const std::lock_guard guard(mutex_);
  jobs_.push_back(std::move(job));
  wake_reader();
}

void store_queue::note_gone(const session_key& key) {
  auto told = std::make_unique<outdated>();
  told->owner = {key.app, key.user, key.id};
  push(std::move(told));
}

result<void> store_queue::stop() {
  if (stopping_)
    return {};
  if (shared_.loop != nullptr)
    shared_.loop->run_until([this] { return jobs_.empty() && reading_ == 0; });
  end_threads();
  if (shared_.loop != nullptr)
    shared_.loop->run_until([this] { return queue_.empty() && !writing_; });
  live_.clear();
  jobs_.clear(); // No actor waits for a load any more.
  // Failures only delay others, by the lease.
  if (!closed_runs_.empty()) {
    std::vector<std::unique_ptr<commit>> no_commits;
    write(no_commits);
  }
  if (!closed_runs_.empty() && shared_.on_warning)
    shared_.on_warning(
      fmt::format("runs that could not be closed or left in the store: {}; "
                  "another process can recover or close them",
                  closed_runs_.size()));
  if (was_holder_)
    static_cast<void>(
      guarded([this] { return store_->remove_holder(shared_.holder_id); }));
  return guarded([this] { return store_->close(); });
}

// -- watchers -----------------------------------------------------------------

void store_queue::add_watcher() {
  if (watchers_.fetch_add(1) > 0
      || shared_.options.follow_period == std::chrono::nanoseconds::zero())
    return;
  const std::lock_guard guard(mutex_);
  if (!std::exchange(is_watching_, true))
    schedule_look();
}

void store_queue::schedule_look() {
  shared_.environment->call_after(shared_.options.follow_period,
                                  [weak = std::weak_ptr(shared_.share())] {
                                    const auto kept = weak.lock();
                                    if (kept && !kept->closing)
                                      kept->store->look_for_watchers();
                                  });
}

// At most one `look` is in the queue: a queue that is slow asks less often.
void store_queue::look_for_watchers() {
  const std::lock_guard guard(mutex_);
  is_watching_ = watchers_ > 0;
  if (!is_watching_)
    return;
  schedule_look();
  if (std::exchange(is_looking_, true))
    return;
  queue_.push_back(std::make_unique<look>());
  wake_writer();
}

// -- open runs ----------------------------------------------------------------

void store_queue::add_run() {
  was_holder_ = true;
  if (open_runs_.fetch_add(1) > 0)
    return;
  const std::lock_guard guard(mutex_);
  if (!std::exchange(is_renewing_, true))
    schedule_renewal();
}

void store_queue::close_run(const session_key& key,
                            const std::string& invocation_id) {
  send_close(key,
             {.invocation_id = invocation_id,
              .holder = shared_.holder_id,
              .opens = false});
}

void store_queue::close_run_of(const session_key& key,
                               const std::string& invocation_id,
                               const std::string& holder) {
  add_run(); // The close takes it from the count.
  send_close(
    key, {.invocation_id = invocation_id, .holder = holder, .opens = false});
}

void store_queue::leave_run(const session_key& key,
                            const std::string& invocation_id,
                            const std::string& agent,
                            std::string holder) {
  send_close(key,
             {.invocation_id = invocation_id,
              .agent = agent,
              .holder = std::move(holder),
              .held_by = shared_.holder_id});
}

void store_queue::send_close(const session_key& key,
                             run_mark mark,
                             bool is_restored) {
  auto closing = std::make_unique<actors::close_run>();
  closing->is_restored = is_restored;
  auto& change = closing->change;
  change.kind = change_kind::close_runs;
  change.owner = {key.app, key.user, key.id};
  if (!mark.opens) {
    const std::lock_guard guard(mutex_);
    closing_.insert({change.owner, mark.invocation_id});
  }
  // Another process may have taken the run over.
  change.runs.push_back(std::move(mark));
  push(std::move(closing));
}

void store_queue::forget_holder(const std::string& holder) {
  const std::lock_guard guard(mutex_);
  dead_holders_.insert(holder);
}

bool store_queue::is_closing(const session_key& key,
                             const std::string& invocation_id) {
  const std::lock_guard guard(mutex_);
  return closing_.contains({{key.app, key.user, key.id}, invocation_id});
}

void store_queue::schedule_renewal() {
  shared_.environment->call_after(shared_.options.run_lease / 3,
                                  [weak = std::weak_ptr(shared_.share())] {
                                    if (const auto kept = weak.lock())
                                      kept->store->renew();
                                  });
}

// Goes on while the runtime shuts down, since its runs may end late. At most
// one letter is in the queue, as for watchers.
void store_queue::renew() {
  const std::lock_guard guard(mutex_);
  is_renewing_ = open_runs_ > 0 && !stopping_;
  if (!is_renewing_)
    return;
  schedule_renewal();
  if (std::exchange(is_renewal_queued_, true))
    return;
  queue_.push_back(std::make_unique<actors::renew>());
  wake_writer();
}

void store_queue::leave_restored_run(const session_key& key,
                                     const std::string& invocation_id,
                                     const std::string& agent,
                                     std::string holder) {
  add_run(); // The letter takes it from the count.
  send_close(key,
             {.invocation_id = invocation_id,
              .agent = agent,
              .holder = std::move(holder),
              .held_by = shared_.holder_id},
             true);
}

// After a failure it is done again, until the runtime shuts down. Damage does
// not go away, and is reported by those who read the session.
void store_queue::leave_restored_runs(std::size_t part) {
  if (!was_holder_)
    return;
  read([this, part](store&) {
    const auto left = guarded(
      [this, part] { return shared_.leave_restored_runs(parts_.at(part)); });
    if (left || left.error().code() == errc::corrupt)
      return;
    const std::lock_guard guard(mutex_);
    if (!leaves_later_.insert(part).second)
      return; // A timer is set.
    shared_.environment->call_after(
      shared_.options.run_lease / 3,
      [weak = std::weak_ptr(shared_.share()), part] {
        const auto held = weak.lock();
        if (!held || held->closing)
          return;
        auto& queue = *held->store;
        {
          const std::lock_guard held_guard(queue.mutex_);
          queue.leaves_later_.erase(part);
        }
        queue.leave_restored_runs(part);
      });
  });
}

// -- threads ------------------------------------------------------------------

void store_queue::end_threads() {
  // Readers end first: a read may push its letter again, which the writer then
  // has to take.
  {
    const std::lock_guard guard(mutex_);
    readers_stopping_ = true;
    job_came_.notify_all();
  }
  for (auto& reader : readers_)
    reader.join();
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    came_.notify_one();
  }
  if (writer_.joinable())
    writer_.join();
}

// Ends the program when memory is short: later commits of the queue may build
// on the one that would be lost.
void store_queue::run_writer() {
  std::unique_lock guard(mutex_);
  while (true) {
    came_.wait(guard, [this] { return !writing_ && has_work(); });
    if (queue_.empty())
      return;
    write_next(guard);
  }
}

bool store_queue::has_work() const noexcept {
  return queue_.empty() ? stopping_ : is_ready(queue_.front());
}

void store_queue::write_next(std::unique_lock<std::mutex>& guard) {
  writing_ = true;
  auto next = take();
  guard.unlock();
  handle(next);
  next = {};
  guard.lock();
  settled_.has_more = !queue_.empty();
  shared_.waits.update(settled_);
  writing_ = false;
}

// Called on a lent thread. A thread that already writes takes later letters
// itself. If a climb holds the first place, `fill` wakes the writer.
bool store_queue::work_here() {
  return with_memory_or_end([this] {
    std::unique_lock guard(mutex_);
    if (writing_ || queue_.empty() || !has_work())
      return false;
    write_next(guard);
    if (has_work())
      came_.notify_one();
    return true;
  });
}

void store_queue::hand_over() noexcept {
  const std::lock_guard guard(mutex_);
  came_.notify_one();
}

// A fork begins a group. Behind the removal of its parent in one commit, it
// would be refused before that removal is durable.
store_queue::group store_queue::take() {
  group next;
  next.dead_holders.swap(dead_holders_);
  std::size_t changes = 0;
  while (!queue_.empty() && is_ready(queue_.front()) && changes < changes_max) {
    if (const auto* const decided = as<commit>(queue_.front())) {
      if (changes > 0 && makes_fork(*decided))
        break;
      changes += decided->changes.size();
    }
    dispatch<commit,
             confirm,
             load,
             read_events,
             find_events,
             leave,
             look,
             trim,
             actors::close_run,
             give_up_run,
             actors::renew,
             outdated>(queue_.pop_front(),
                       [&next](auto front) { next.add(std::move(front)); });
  }
  if (next.looks)
    is_looking_ = false;
  if (next.renews)
    is_renewal_queued_ = false;
  return next;
}

void store_queue::run_reader() {
  std::unique_lock guard(mutex_);
  while (true) {
    job_came_.wait(guard,
                   [this] { return !jobs_.empty() || readers_stopping_; });
    if (jobs_.empty())
      return;
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job(*store_);
    guard.lock();
  }
}

// -- on a loop ----------------------------------------------------------------

void store_queue::wake_writer() {
  if (shared_.loop == nullptr) {
    // A writer at work takes the letters when it is done.
    if (!writing_ && !lent_thread::defer(shared_, *this))
      came_.notify_one();
    return;
  }
  if (writing_ || queue_.empty() || !is_ready(queue_.front()))
    return;
  writing_ = true;
  shared_.loop->post(job_kind::store_write, [this] { write_on_loop(); });
}

void store_queue::wake_reader() {
  if (shared_.loop == nullptr)
    return job_came_.notify_one();
  if (readers_stopping_ || jobs_.empty() || reading_ == readers_max)
    return;
  ++reading_;
  shared_.loop->post(job_kind::store_read, [this] { read_on_loop(); });
}

void store_queue::write_on_loop() {
  std::unique_lock guard(mutex_);
  write_next(guard);
  wake_writer();
}

void store_queue::read_on_loop() {
  std::unique_lock guard(mutex_);
  while (!jobs_.empty()) {
    const auto job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job(*store_);
    guard.lock();
  }
  --reading_;
}

} // namespace troupe::actors
