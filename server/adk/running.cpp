#include "troupe/server/adk/running.hpp"

namespace troupe::serving {

std::shared_ptr<const void> running::reserve(const std::string& id) {
  const auto made = std::make_shared<const char>();
  const std::lock_guard guard(mutex_);
  std::erase_if(reserved_,
                [](const auto& each) { return each.second.expired(); });
  if (runs_.contains(id) || !reserved_.emplace(id, made).second)
    return nullptr;
  return made;
}

namespace {

void stop(active_run& which, bool leaves_open) {
  if (leaves_open)
    which.handle.leave();
  else
    which.handle.cancel();
}

} // namespace

active_run_ptr running::add(session_key key, run started) {
  auto added = std::make_shared<active_run>(std::move(key), std::move(started));
  std::optional<bool> leaves_open;
  {
    const std::lock_guard guard(mutex_);
    runs_.emplace(added->handle.invocation_id(), added);
    ++started_;
    leaves_open = leaves_open_;
  }
  if (leaves_open)
    stop(*added, *leaves_open);
  return added;
}

void running::remove(const std::string& id, bool has_failed) {
  active_run_ptr removed; // Destroyed without the lock.
  const std::lock_guard guard(mutex_);
  const auto found = runs_.find(id);
  if (found == runs_.end())
    return;
  removed = std::move(found->second);
  runs_.erase(found);
  // A run that was left goes on elsewhere.
  failed_ += has_failed && leaves_open_ != true ? 1 : 0;
  if (runs_.empty())
    fewer_.notify_all();
}

run_counts running::counts() const {
  const std::lock_guard guard(mutex_);
  return {runs_.size(), started_, failed_};
}

bool running::await_none(std::chrono::milliseconds limit) {
  std::unique_lock guard(mutex_);
  return fewer_.wait_for(guard, limit, [this] { return runs_.empty(); });
}

active_run_ptr running::find(const session_key& key,
                             const std::string& id) const {
  const std::lock_guard guard(mutex_);
  const auto found = runs_.find(id);
  return found == runs_.end() || found->second->key != key ? nullptr
                                                           : found->second;
}

std::vector<std::string> running::of(const session_key& key) const {
  std::vector<std::string> ids;
  const std::lock_guard guard(mutex_);
  for (const auto& [id, each] : runs_)
    if (each->key == key)
      ids.push_back(id);
  return ids;
}

void running::cancel_all(bool leaves_open) {
  std::vector<active_run_ptr> all;
  {
    const std::lock_guard guard(mutex_);
    leaves_open_ = leaves_open;
    for (const auto& [id, each] : runs_)
      all.push_back(each);
  }
  // Without the lock: the end of a run may be told inside this call.
  for (const auto& each : all)
    stop(*each, leaves_open);
}

} // namespace troupe::serving
