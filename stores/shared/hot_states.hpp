// The newest loaded states of users and apps with many changes that are not
// folded. The next load applies the later changes only.

#pragma once

#include "troupe/stores/store.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

namespace troupe {

/// Cleared when the store has lost commits. Safe from any
/// thread.
class hot_states {
public:
  struct state {
    std::int64_t id = 0; ///< Of the scope; never used again.
    std::int64_t revision = 0;
    std::int64_t row = 0; ///< The row of the log that made the revision.
    state_map keys;
  };

  /// Minimum number of changes that are not folded, for a state to be kept.
  static constexpr std::size_t changes_min = 1'024;

  /// Number of the history, to be asked for before a load.
  std::uint64_t epoch() const {
    const std::lock_guard guard(mutex_);
    return epoch_;
  }

  /// Returns the state that was kept last. The scope may have been made again
  /// since, with another id.
  std::optional<state> find(const owner_name& owner) const {
    const std::lock_guard guard(mutex_);
    const auto found = states_.find(owner);
    return found == states_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Keeps a state that was loaded in `epoch`, unless a newer one is kept.
  void keep(const owner_name& owner, state loaded, std::uint64_t epoch) {
    const std::lock_guard guard(mutex_);
    if (epoch != epoch_)
      return;
    if (states_.size() >= states_max && !states_.contains(owner))
      states_.clear();
    auto& kept = states_[owner];
    if (kept.id != loaded.id || kept.revision < loaded.revision)
      kept = std::move(loaded);
  }

  void clear() {
    const std::lock_guard guard(mutex_);
    states_.clear();
    ++epoch_;
  }

private:
  // Few scopes are hot at the same time, and an app may have many keys.
  static constexpr std::size_t states_max = 16;

  mutable std::mutex mutex_;
  std::unordered_map<owner_name, state> states_;
  std::uint64_t epoch_ = 0;
};

} // namespace troupe
