#include "troupe/stores/shared/foreign_changes.hpp"

#include <utility>

namespace troupe {

void foreign_changes::note(const log_row& row) {
  for (const auto id : row.scopes)
    if (id != 0)
      noted_.scope_ids.insert(id);
}

void foreign_changes::note_removal(owner_name removed) {
  removals_.note(removed);
  noted_.names.insert(std::move(removed));
}

void foreign_changes::keep_name(std::int64_t scope_id,
                                const owner_name& removed) {
  if (noted_.scope_ids.contains(scope_id))
    noted_.names.insert(removed);
}

void foreign_changes::forget() {
  removals_.clear();
  noted_ = {};
}

} // namespace troupe
