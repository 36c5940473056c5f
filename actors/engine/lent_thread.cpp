#include "troupe/actors/engine/lent_thread.hpp"

#include "troupe/actors/engine/blocked_thread.hpp"
#include "troupe/actors/engine/execution.hpp"
#include "troupe/actors/engine/scheduler.hpp"

#include <caf/resumable.hpp>
#include <caf/scoped_execution_unit.hpp>

#include <utility>

namespace troupe::actors {

namespace {

thread_local lent_thread* lent_here = nullptr;

} // namespace

lent_thread::lent_thread(execution& on) noexcept
  : on_(on),
    outer_(std::exchange(lent_here, this)) {}

lent_thread::~lent_thread() {
  lent_here = outer_;
  if (!entered_)
    return;
  for (; count_ > 0; --count_)
    schedule(entered_->system, waiting_[first_++ % waiting_max]);
  if (deferred_ != nullptr)
    deferred_->hand_over();
  entered_->senders.leave(0);
}

bool lent_thread::take(const execution& on, caf::resumable* job) noexcept {
  auto* const here = lent_here;
  if (here == nullptr || &here->on_ != &on || here->count_ == waiting_max
      || here->activations_ == activations_max)
    return false;
  here->enter();
  here->waiting_[(here->first_ + here->count_++) % waiting_max] = job;
  return true;
}

// A job may end the last actor that keeps the execution alive, but this thread
// still passes the remaining jobs to the scheduler.
void lent_thread::enter() {
  if (entered_)
    return;
  entered_ = on_.shared_from_this();
  entered_->senders.enter(0);
}

bool lent_thread::defer(const execution& on, spare_work& work) noexcept {
  auto* const here = lent_here;
  if (here == nullptr || &here->on_ != &on)
    return false;
  here->enter();
  here->deferred_ = &work;
  return true;
}

bool lent_thread::work_next() {
  if (deferred_ == nullptr)
    return false;
  auto* const work = std::exchange(deferred_, nullptr);
  const wake_batch woken;
  // As in an activation, code of other callers must not run here.
  in_activation_ = true;
  const bool has_worked = work->work_here();
  in_activation_ = false;
  return has_worked;
}

bool lent_thread::run_next() {
  if (count_ == 0 || activations_ == activations_max)
    return false;
  auto* const job = waiting_[first_++ % waiting_max];
  --count_;
  ++activations_;
  caf::scoped_execution_unit unit(&on_.system);
  in_activation_ = true;
  const auto outcome = job->resume(&unit, letters_max);
  in_activation_ = false;
  if (outcome == caf::resumable::resume_later)
    schedule(on_.system, job);
  else
    caf::intrusive_ptr_release(job);
  return true;
}

bool lent_thread::is_starting() noexcept {
  return lent_here != nullptr && !lent_here->in_activation_;
}

execution* lent_thread::activation_on() noexcept {
  return lent_here != nullptr && lent_here->in_activation_ ? &lent_here->on_
                                                           : nullptr;
}

} // namespace troupe::actors
