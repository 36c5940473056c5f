#include "troupe/stores/shared/unreported_removals.hpp"

#include "troupe/stores/shared/owner_names.hpp"

#include <algorithm>

namespace troupe {

std::vector<owner_name>
unreported_removals::touched_by(std::span<const store_change> changes) const {
  std::vector<owner_name> touched;
  if (names_.empty())
    return touched;
  const auto touch = [&](const owner_name& owner) {
    if (names_.contains(owner)
        && std::ranges::find(touched, owner) == touched.end())
      touched.push_back(owner);
  };
  for (const auto& change : changes) {
    const auto& owner = change.owner;
    if (change.session_revision || change.kind == change_kind::remove
        || change.kind == change_kind::trim)
      touch(owner);
    if (change.user_revision)
      touch(user_of(owner));
  }
  return touched;
}

void unreported_removals::mark_reported(std::span<const owner_name> moved) {
  for (const auto& owner : moved)
    names_.erase(owner);
}

} // namespace troupe
