// Baseline: the state under one global mutex, like in the in-memory services of
// other ADK implementations.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/key.hpp"

#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

namespace bench {

/// Applies a delta to all scopes at once. Makes no checks, remembers no ids,
/// and gives no snapshots. Thread-safe.
class mutex_sessions {
public:
  void create(const troupe::session_key& key) {
    const std::lock_guard guard(mutex_);
    sessions_[key];
  }

  bool append(const troupe::session_key& key, troupe::event_ptr said) {
    const std::lock_guard guard(mutex_);
    const auto found = sessions_.find(key);
    if (found == sessions_.end())
      return false;
    for (const auto& done : said->actions.state_delta.operations()) {
      switch (done.where) {
      case troupe::scope::session:
        found->second.state[done.name] = done.operand;
        break;
      case troupe::scope::user:
        users_[key.user][done.name] = done.operand;
        break;
      case troupe::scope::app:
        app_[done.name] = done.operand;
        break;
      case troupe::scope::temp:
        break;
      }
    }
    found->second.events.push_back(std::move(said));
    return true;
  }

private:
  using scope_keys = std::unordered_map<std::string, troupe::value>;

  struct session {
    scope_keys state;
    std::deque<troupe::event_ptr> events;
  };

  std::mutex mutex_;
  scope_keys app_;
  std::unordered_map<std::string, scope_keys> users_;
  std::unordered_map<troupe::session_key, session> sessions_;
};

} // namespace bench
