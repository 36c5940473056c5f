// Owners that others have removed and that nobody here has been told of: what
// is there under their names now is not what the changes of this process build
// on, even if it has come to the same revision.

#pragma once

#include "troupe/stores/store.hpp"

#include <set>
#include <span>
#include <vector>

namespace troupe {

class untold_removals {
public:
  void note(owner_name removed) { names_.insert(std::move(removed)); }

  /// Who of them a change builds on, or removes as a session. The removal of a
  /// user builds on nothing.
  std::vector<owner_name>
  touched_by(std::span<const store_change> changes) const;

  /// They are told of as moved.
  void tell(std::span<const owner_name> moved);

  /// All are told of.
  void clear() { names_.clear(); }

private:
  std::set<owner_name> names_;
};

} // namespace troupe
