#include "program.hpp"

#include "troupe/actors/backend.hpp"

#include <utility>

namespace troupe::testing {

program::program(world& in,
                 history& told,
                 const plan& chosen,
                 shared_place& place,
                 std::uint64_t seed)
  : place_(place),
    store_(
      std::make_shared<unsteady_store>(in, told, place, chosen.store, seed)),
    config_(std::make_unique<caf::actor_system_config>()) {
  actors::use_job_loop(*config_, in);
  system_ = std::make_unique<caf::actor_system>(*config_);
  auto options = chosen.options;
  options.store = store_;
  options.on_warning = [&in](const std::string&) { in.note("warning"); };
  options.environment = in.make_environment(seed);
  runtime_.emplace(troupe::open_runtime(*system_, std::move(options)).value());
}

program::~program() = default;

std::shared_ptr<run> program::keep(run started) {
  runs_.push_back(std::make_shared<run>(std::move(started)));
  return runs_.back();
}

std::shared_ptr<follower> program::keep(follower started) {
  followers_.push_back(std::make_shared<follower>(std::move(started)));
  return followers_.back();
}

std::vector<std::string> program::end(bool dies) {
  std::vector<std::string> left;
  if (dies)
    store_->die();
  is_closing_ = true;
  // A store that notices a loss while it closes reports it; that is expected.
  if (auto closed = runtime_->shut_down();
      !closed && !dies && place_.losses() == 0)
    left.push_back("the store was not closed: " + to_string(closed.error()));
  const std::weak_ptr<actors::setup> shared
    = detail::backend_of(*runtime_)->share();
  runs_.clear();
  followers_.clear();
  runtime_.reset();
  system_.reset();
  // Timers and late models may keep the shared state alive for a while, but no
  // actor, call or run may remain.
  if (const auto held = shared.lock()) {
    if (!held->actors.empty())
      left.push_back("an actor is left of a runtime that has ended");
    if (!held->calls.empty() || !held->appends.empty() || !held->runs.empty())
      left.push_back("calls are left of a runtime that has ended");
  }
  return left;
}

} // namespace troupe::testing
