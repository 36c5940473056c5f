#include "troupe/actors/engine/job_loop.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/detail/test_actor_clock.hpp>
#include <caf/execution_unit.hpp>
#include <caf/resumable.hpp>
#include <caf/scheduler/abstract_coordinator.hpp>

#include <cstddef>

namespace troupe::actors {

namespace {

class looped_scheduler final : public caf::scheduler::abstract_coordinator {
public:
  looped_scheduler(caf::actor_system& system, job_loop& loop)
    : abstract_coordinator(system),
      loop_(loop),
      unit_(*this) {}

  job_loop& loop() const noexcept { return loop_; }

  void enqueue(caf::resumable* job) override {
    ++queued_;
    loop_.post(job_kind::actor, [this, job] { run(job); });
  }

  caf::actor_clock& clock() noexcept override { return clock_; }

  // CAF's own `start` would run a printing actor on a thread of its own.
  void start() override {}

  void stop() override {
    loop_.run_until([this] { return queued_ == 0; });
  }

private:
  struct unit final : caf::execution_unit {
    explicit unit(looped_scheduler& on)
      : execution_unit(&on.system()),
        scheduler(on) {}

    void exec_later(caf::resumable* job) override { scheduler.enqueue(job); }

    looped_scheduler& scheduler;
  };

  void run(caf::resumable* job) {
    switch (job->resume(&unit_, SIZE_MAX)) {
    case caf::resumable::resume_later:
      enqueue(job);
      break;
    case caf::resumable::done:
    case caf::resumable::awaiting_message:
      caf::intrusive_ptr_release(job);
      break;
    case caf::resumable::shutdown_execution_unit:
      break;
    }
    --queued_;
  }

  job_loop& loop_;
  unit unit_;
  // Our actors have no timeouts, so this clock is never used.
  caf::detail::test_actor_clock clock_;
  std::size_t queued_ = 0;
};

} // namespace

void use_job_loop(caf::actor_system_config& config, job_loop& loop) {
  config.module_factories.emplace_back(
    [&loop](caf::actor_system& system) -> caf::actor_system::module* {
      return new looped_scheduler(system, loop);
    });
}

job_loop* loop_of(caf::actor_system& system) noexcept {
  auto* looped = dynamic_cast<looped_scheduler*>(&system.scheduler());
  return looped != nullptr ? &looped->loop() : nullptr;
}

} // namespace troupe::actors
