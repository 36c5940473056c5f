#include "troupe/actors/engine/lent_thread.hpp"

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
  entered_->senders.leave(0);
}

bool lent_thread::take(const execution& on, caf::resumable* job) noexcept {
  auto* const here = lent_here;
  if (here == nullptr || &here->on_ != &on || here->count_ == waiting_max
      || here->activations_ == activations_max)
    return false;
  // The job may end the last actor that keeps the execution alive, but this
  // thread still has to schedule the remaining activations.
  if (!here->entered_) {
    here->entered_ = here->on_.shared_from_this();
    here->entered_->senders.enter(0);
  }
  here->waiting_[(here->first_ + here->count_++) % waiting_max] = job;
  return true;
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
