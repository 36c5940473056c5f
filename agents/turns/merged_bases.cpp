#include "troupe/agents/turns/merged_bases.hpp"

#include "troupe/core/support/scope_state.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

namespace troupe {

namespace {

constexpr size_limits unlimited{SIZE_MAX, SIZE_MAX};

// The value of the key after the merged changes, which start at the owner's
// value. Unset if that is not known, or if an operation fails; the owner will
// refuse the event then.
std::optional<value> value_after(const delta& merged,
                                 const write_basis& based) {
  auto current = based.owned;
  for (const auto& done : merged.share(based.where)) {
    if (done.name != based.name)
      continue;
    if (is_typed(done) && !current)
      return std::nullopt;
    auto outcome = evaluate(
      done, current && !current->is_null() ? &*current : nullptr, unlimited);
    if (!outcome)
      return std::nullopt;
    current = std::move(*outcome);
  }
  return current;
}

bool has_key(const std::vector<write_basis>& bases, const write_basis& wanted) {
  return std::ranges::any_of(bases, [&wanted](const write_basis& each) {
    return each.owned && each.where == wanted.where && each.name == wanted.name;
  });
}

void add(std::vector<write_basis>& bases,
         write_basis next,
         const delta& earlier) {
  if (earlier.find_last(next.where, next.name) == nullptr) {
    if (next.owned)
      bases.push_back(std::move(next));
    return;
  }
  const auto now = value_after(earlier, next);
  const bool is_lost = now && *now != next.seen;
  // One comparison with the owner for each key is enough.
  if (next.owned && !has_key(bases, next))
    bases.push_back(next);
  if (!is_lost)
    return;
  next.owned.reset();
  next.is_lost = true;
  bases.push_back(std::move(next));
}

} // namespace

std::vector<write_basis> merge_bases(const std::vector<tool_call>& answered) {
  std::vector<write_basis> bases;
  if (std::ranges::all_of(
        answered, [](const tool_call& each) { return each.bases.empty(); }))
    return bases;
  delta earlier;
  for (const auto& done : answered) {
    for (const auto& each : done.bases)
      add(bases, each, earlier);
    earlier.merge(done.recorded);
    earlier.merge(done.actions.state_delta);
  }
  return bases;
}

} // namespace troupe
