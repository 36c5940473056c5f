// Changes that other processes made to a shared location, collected until the
// next `changed_elsewhere`.

#pragma once

#include "troupe/stores/shared/log_tail.hpp"
#include "troupe/stores/shared/unreported_removals.hpp"

#include <set>
#include <unordered_set>

namespace troupe {

class foreign_changes {
public:
  void note(const log_row& row);
  void note_removal(owner_name removed);

  /// Records the name of an owner that this process removes, if another process
  /// had changed it: its id no longer leads to a name afterwards.
  void keep_name(std::int64_t scope_id, const owner_name& removed);

  struct summary {
    std::unordered_set<std::int64_t> scope_ids;
    std::set<owner_name> names; ///< Owners that were removed.
  };

  /// Returns everything since the last `forget`.
  const summary& noted() const noexcept { return noted_; }

  /// Called after the changes were reported.
  void forget();

  unreported_removals& removals() noexcept { return removals_; }

private:
  summary noted_;
  unreported_removals removals_;
};

} // namespace troupe
