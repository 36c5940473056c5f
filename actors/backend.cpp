#include "troupe/actors/backend.hpp"

#include "troupe/actors/engine/job_loop.hpp"
#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/engine/scheduler.hpp"
#include "troupe/actors/owners/app.hpp"
#include "troupe/actors/owners/directory.hpp"
#include "troupe/actors/owners/retirement.hpp"
#include "troupe/actors/owners/store_queue.hpp"
#include "troupe/actors/running/holder_name.hpp"
#include "troupe/actors/running/plugins.hpp"
#include "troupe/actors/running/restored_runs.hpp"
#include "troupe/contexts/task.hpp"

#include <algorithm>

namespace troupe::detail {

namespace {

std::unique_ptr<caf::actor_system_config> make_config(std::size_t threads) {
  auto config = std::make_unique<caf::actor_system_config>();
  actors::install_scheduler(*config, threads);
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
  // A caller that needs the result has called it before.
  static_cast<void>(shut_down());
}

bool session_backend::enter_run(const std::shared_ptr<run_control>& run) {
  const std::lock_guard guard(mutex_);
  if (is_closing())
    return false;
  // Ended runs are removed when the list has doubled, so that a run costs O(1).
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

bool session_backend::has_run(const std::string& invocation_id) const {
  const std::lock_guard guard(mutex_);
  return std::ranges::any_of(
    runs_, [&](const std::weak_ptr<run_control>& each) {
      const auto known = each.lock();
      return known && known->invocation_id == invocation_id
             && !known->has_ended();
    });
}

bool session_backend::enter_follower(
  const std::shared_ptr<ending_reader>& follower) {
  const std::lock_guard guard(mutex_);
  if (is_closing())
    return false;
  // As for runs.
  if (followers_.size() >= followers_swept_) {
    std::erase_if(followers_, [](const std::weak_ptr<ending_reader>& each) {
      return each.expired();
    });
    followers_swept_ = std::max<std::size_t>(64, followers_.size() * 2);
  }
  followers_.push_back(follower);
  return true;
}

void session_backend::use_store(std::shared_ptr<store> kept) {
  if (kept->can_list_runs())
    shared_->holder_id
      = actors::make_holder_name(shared_->environment->new_id());
  shared_->has_run = [this](const std::string& id) { return has_run(id); };
  shared_->leave_restored_runs = [this](troupe::store& on) {
    return actors::leave_restored_runs(on, *shared_);
  };
  shared_->store
    = std::make_unique<actors::store_queue>(std::move(kept), *shared_);
  shared_->retirement->start();
}

void session_backend::await(actors::load_gate& gate) {
  if (shared_->loop != nullptr)
    shared_->loop->run_until([&gate] { return gate.empty(); });
  gate.wait_until_empty();
}

result<void> session_backend::shut_down() {
  // Order of shutting down: first refuse new work (`closing`), then cancel and
  // await runs, then await calls and appends. Only then the actors end, since
  // they answer those; the store ends after the last actor, since owners use it
  // until they end.
  std::call_once(shut_, [this] {
    std::vector<std::weak_ptr<run_control>> runs;
    std::vector<std::weak_ptr<ending_reader>> followers;
    {
      const std::lock_guard guard(mutex_);
      shared_->closing = true;
      runs = std::move(runs_);
      followers = std::move(followers_);
    }
    for (const auto& each : followers)
      if (const auto follower = each.lock())
        follower->cancel({errc::cancelled, "the runtime is shutting down"});
    for (const auto& each : runs)
      if (const auto run = each.lock())
        run->leave({errc::cancelled, "the runtime is shutting down"});
    for (const auto& each : runs)
      if (const auto run = each.lock()) {
        if (shared_->loop != nullptr)
          shared_->loop->run_until([&run] { return run->has_ended(); });
        static_cast<void>(run->wait()); // The outcome is for its holder.
      }
    await(shared_->calls);
    await(shared_->appends);
    for (const auto& app : shared_->apps->close())
      app->tell(std::make_unique<actors::shut_down>());
    await(shared_->actors);
    if (shared_->store)
      closed_ = shared_->store->stop();
    // From here on, completions of runs are called on the thread that causes
    // them. Those already on their way are awaited.
    shared_->ended = true;
    await(shared_->calls);
    await(shared_->senders);
    own_system_.reset();
    if (auto ended = actors::close_all(shared_->plugins); !ended && closed_)
      closed_ = ended;
  });
  return closed_;
}

bool is_runtime_thread() noexcept {
  return actors::is_worker_thread() || executor::current() != nullptr
         || actors::lent_thread::activation_on() != nullptr;
}

} // namespace troupe::detail
