// Owners that other processes have removed, until the removal was reported.
//
// Invariant: a change that builds on such an owner is refused once. Comparing
// revisions is not enough: a new owner of the same name may have reached the
// same revision.

#pragma once

#include "troupe/stores/store.hpp"

#include <set>
#include <span>
#include <vector>

namespace troupe {

class unreported_removals {
public:
  void note(owner_name removed) { names_.insert(std::move(removed)); }

  /// Returns the removed owners that a change builds on or removes as a
  /// session. The removal of a user builds on nothing.
  std::vector<owner_name>
  touched_by(std::span<const store_change> changes) const;

  /// Marks the owners as reported; a refused commit has named them as moved.
  void mark_reported(std::span<const owner_name> moved);

  /// Marks all owners as reported.
  void clear() { names_.clear(); }

private:
  std::set<owner_name> names_;
};

} // namespace troupe
