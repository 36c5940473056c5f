#include "troupe/core/step_reads.hpp"

#include <algorithm>

namespace troupe {

void step_reads::note_read(std::string_view key,
                           std::optional<value> owned,
                           value seen) {
  if (!is_on_)
    return;
  auto found = reads_.find(key);
  if (found == reads_.end())
    found = reads_.emplace(std::string(key), read()).first;
  found->second = {std::move(owned), std::move(seen)};
}

void step_reads::note_write(std::string_view key) {
  const auto last = reads_.find(key);
  if (last == reads_.end())
    return;
  const auto [where, name] = split_key(key);
  if (std::ranges::any_of(bases_,
                          [where = where, name = name](const auto& each) {
                            return each.where == where && each.name == name;
                          }))
    return;
  bases_.push_back(
    {where, std::string(name), last->second.owned, last->second.seen});
}

void step_reads::note_event(const delta& changes) {
  if (reads_.empty())
    return;
  for (const auto& done : changes.operations()) {
    const auto known = reads_.find(join_key(done.where, done.name));
    if (known == reads_.end())
      continue;
    if (is_typed(done))
      reads_.erase(known);
    else
      known->second = {done.operand, done.operand};
  }
}

void step_reads::forget() {
  reads_.clear();
  bases_.clear();
}

} // namespace troupe
