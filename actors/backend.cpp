#include "troupe/actors/backend.hpp"

#include "troupe/actors/app_actor.hpp"
#include "troupe/actors/scheduler.hpp"
#include "troupe/actors/spawn.hpp"
#include "troupe/contexts/task.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

std::unique_ptr<caf::actor_system_config> make_config(std::size_t threads) {
  auto config = std::make_unique<caf::actor_system_config>();
  actors::use_fair_scheduler(*config, threads);
  return config;
}

} // namespace

session_backend::session_backend(
  std::shared_ptr<troupe::environment> environment,
  actors::setup_options options,
  std::size_t threads)
  : config_(make_config(threads)),
    own_system_(std::make_unique<caf::actor_system>(*config_)),
    shared_(std::make_shared<actors::setup>(
      *own_system_, std::move(environment), options)) {}

session_backend::session_backend(
  caf::actor_system& system,
  std::shared_ptr<troupe::environment> environment,
  actors::setup_options options)
  : shared_(
    std::make_shared<actors::setup>(system, std::move(environment), options)) {}

session_backend::~session_backend() {
  shut_down();
}

caf::strong_actor_ptr session_backend::find_app(const std::string& app) const {
  const std::lock_guard guard(mutex_);
  const auto found = apps_.find(app);
  return found == apps_.end() ? nullptr : found->second;
}

caf::strong_actor_ptr session_backend::open_app(const std::string& app) {
  const std::lock_guard guard(mutex_);
  if (is_closing())
    return nullptr;
  auto& known = apps_[app];
  if (!known)
    known
      = actors::spawn_actor<actors::app_actor>(shared_->system, shared_, app);
  return known;
}

bool session_backend::enter_run(const std::shared_ptr<run_control>& run) {
  const std::lock_guard guard(mutex_);
  if (is_closing())
    return false;
  // Swept when it has doubled, so that a run costs O(1).
  if (runs_.size() >= runs_swept_) {
    std::erase_if(runs_, [](const std::weak_ptr<run_control>& each) {
      const auto known = each.lock();
      return !known || known->has_ended();
    });
    runs_swept_ = std::max<std::size_t>(64, runs_.size() * 2);
  }
  runs_.push_back(run);
  return true;
}

void session_backend::shut_down() {
  std::call_once(shut_, [this] {
    std::vector<std::weak_ptr<run_control>> runs;
    {
      const std::lock_guard guard(mutex_);
      shared_->closing = true;
      runs = std::move(runs_);
    }
    for (const auto& each : runs)
      if (const auto run = each.lock())
        run->cancel({errc::cancelled, "the runtime is shutting down"});
    for (const auto& each : runs)
      if (const auto run = each.lock())
        static_cast<void>(run->wait()); // How it ended is its holder's to know.
    shared_->calls.wait_until_empty();
    shared_->appends.wait_until_empty();
    decltype(apps_) apps;
    {
      const std::lock_guard guard(mutex_);
      apps.swap(apps_);
    }
    for (auto& [name, app] : apps)
      actors::as_inbox(app).tell(std::make_unique<actors::shut_down>());
    apps.clear();
    shared_->actors.wait_until_empty();
    // From here on completions of runs are called where they come up; those
    // that are on their way are waited for.
    shared_->ended = true;
    shared_->calls.wait_until_empty();
    shared_->senders.wait_until_empty();
    own_system_.reset();
  });
}

bool is_runtime_thread() noexcept {
  return actors::is_worker_thread() || executor::current() != nullptr;
}

} // namespace troupe::detail
