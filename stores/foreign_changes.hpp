// What other processes did to a shared place, until somebody asks.

#pragma once

#include "troupe/stores/log_tail.hpp"
#include "troupe/stores/untold_removals.hpp"

#include <set>
#include <unordered_set>

namespace troupe {

class foreign_changes {
public:
  void note(const log_row& row);
  void note_removal(owner_name removed);

  /// This process itself removes an owner, whose name is not found any more
  /// when somebody asks.
  void keep_name(std::int64_t scope_id, const owner_name& removed);

  struct summary {
    std::unordered_set<std::int64_t> scope_ids;
    std::set<owner_name> names; ///< Of those who were removed.
  };

  /// Everything since the last `forget`.
  const summary& noted() const noexcept { return noted_; }

  /// Somebody has been told.
  void forget();

  untold_removals& removals() noexcept { return removals_; }

private:
  summary noted_;
  untold_removals removals_;
};

} // namespace troupe
