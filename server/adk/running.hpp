// The runs that requests have started and that have not ended.
//
// A run is held here and not by its request, so it goes on when its client
// leaves.

#pragma once

#include "troupe/core/key.hpp"
#include "troupe/runtime/run.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe::serving {

/// A run, and the session on which it was started.
struct active_run {
  active_run(session_key on, run started)
    : key(std::move(on)),
      handle(std::move(started)) {}

  const session_key key;
  run handle;
};

using active_run_ptr = std::shared_ptr<active_run>;

struct run_counts {
  std::size_t active = 0;    ///< Runs that have not ended.
  std::uint64_t started = 0; ///< All runs.
  std::uint64_t failed = 0;  ///< Runs that ended with an error or cancelled.
};

/// Thread-safe.
class running {
public:
  /// Keeps the run with this id for one caller, as long as the result lives.
  /// Returns null if another caller keeps it, or if it is here.
  std::shared_ptr<const void> reserve(const std::string& id);

  active_run_ptr add(session_key key, run started);
  void remove(const std::string& id, bool has_failed);

  /// Returns the run of a session by its id; null if it has ended.
  active_run_ptr find(const session_key& key, const std::string& id) const;

  /// Returns the ids of a session's runs.
  std::vector<std::string> of(const session_key& key) const;

  run_counts counts() const;

  /// Waits until there is no run, at most for `limit`. Returns whether that is
  /// so.
  bool await_none(std::chrono::milliseconds limit);

  /// Cancels all runs, also those that are added later. With `leaves_open` they
  /// stay open in the store.
  void cancel_all(bool leaves_open);

private:
  mutable std::mutex mutex_;
  std::condition_variable fewer_;
  std::map<std::string, active_run_ptr> runs_;
  std::map<std::string, std::weak_ptr<const void>> reserved_;
  std::uint64_t started_ = 0;
  std::uint64_t failed_ = 0;
  std::optional<bool> leaves_open_; // Set by `cancel_all`.
};

} // namespace troupe::serving
