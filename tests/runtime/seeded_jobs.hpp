// A loop that runs a runtime on the thread of the test, in an order that a seed
// decides.

#pragma once

#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/runtime/actors.hpp"

#include "../random.hpp"
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace troupe::testing {

/// Half of the jobs that a job makes run before the job goes on, as they may on
/// threads. The others run later, in any order. Not thread-safe.
class seeded_jobs final : public actors::job_loop {
public:
  explicit seeded_jobs(std::uint64_t seed) : chance_(seed) {}

  void post(actors::job_kind, std::function<void()> work) override {
    if (is_running_ && chance_.one_in(2))
      work();
    else
      ready_.push_back(std::move(work));
  }

  void run_until(const std::function<bool()>& done) override {
    while (!done()) {
      if (ready_.empty())
        throw std::logic_error("no job is left, but a caller waits");
      step();
    }
  }

  /// Runs none, some or all of the jobs.
  void run_some() {
    while (!ready_.empty() && !chance_.one_in(3))
      step();
  }

  /// Runs jobs until none is left.
  void run_all() {
    run_until([this] { return ready_.empty(); });
  }

private:
  void step() {
    std::swap(ready_[chance_.below(ready_.size())], ready_.back());
    const auto work = std::move(ready_.back());
    ready_.pop_back();
    is_running_ = true;
    work();
    is_running_ = false;
  }

  random_source chance_;
  std::vector<std::function<void()>> ready_;
  bool is_running_ = false;
};

/// A runtime without a store whose jobs run when the test says so.
struct seeded_runtime {
  explicit seeded_runtime(std::uint64_t seed)
    : jobs(seed),
      config(make_config(jobs)),
      system(*config),
      runtime(open_runtime(system).value()) {}

  seeded_jobs jobs;
  const std::unique_ptr<caf::actor_system_config> config;
  caf::actor_system system;
  troupe::runtime runtime;

private:
  static std::unique_ptr<caf::actor_system_config>
  make_config(seeded_jobs& jobs) {
    auto made = std::make_unique<caf::actor_system_config>();
    actors::use_job_loop(*made, jobs);
    return made;
  }
};

} // namespace troupe::testing
