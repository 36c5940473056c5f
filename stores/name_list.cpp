#include "troupe/stores/name_list.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>

namespace troupe {

namespace {

// One page, because a page shows one moment: a session that is updated between
// two pages would be on neither.
result<std::vector<session_row>> sort_all(store& kept,
                                          const name_query& query) {
  auto rows = kept.list({.app = query.app,
                         .user = query.user,
                         .limit = std::numeric_limits<std::size_t>::max()});
  if (!rows)
    return rows;
  const auto name_of
    = [](const session_row& row) { return std::tie(row.key.user, row.key.id); };
  if (query.behind)
    std::erase_if(*rows, [&](const session_row& row) {
      return name_of(row) <= std::tie(query.behind->user, query.behind->id);
    });
  std::ranges::sort(*rows, {}, name_of);
  if (rows->size() > query.limit)
    rows->erase(rows->begin() + static_cast<std::ptrdiff_t>(query.limit),
                rows->end());
  return rows;
}

} // namespace

result<std::vector<session_row>> list_by_name(store& kept,
                                              const name_query& query) {
  if (auto* named = dynamic_cast<name_list*>(&kept))
    return named->list_by_name(query);
  return sort_all(kept, query);
}

} // namespace troupe
