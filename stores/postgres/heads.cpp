#include "troupe/stores/postgres/heads.hpp"

#include <utility>

namespace troupe {

namespace {

// Maximum size of each of the two generations; an entry has about 200 bytes.
constexpr std::size_t heads_max = 32'768;

} // namespace

std::optional<postgres_head> postgres_heads::find(const owner_name& owner) {
  if (const auto found = young_.find(owner); found != young_.end())
    return found->second;
  const auto found = old_.find(owner);
  if (found == old_.end())
    return std::nullopt;
  const auto head = found->second;
  put(owner, head);
  return head;
}

void postgres_heads::put(const owner_name& owner, const postgres_head& head) {
  if (young_.size() >= heads_max)
    old_ = std::exchange(young_, {});
  young_.insert_or_assign(owner, head);
}

void postgres_heads::changed(const owner_name& owner,
                             const postgres_head& head) {
  if (find(owner))
    put(owner, head);
}

void postgres_heads::refused(const owner_name& owner) {
  auto head = find(owner);
  if (!head)
    return;
  if (std::exchange(head->was_refused, true))
    erase(owner);
  else
    put(owner, *head);
}

void postgres_heads::erase(const owner_name& owner) {
  young_.erase(owner);
  old_.erase(owner);
}

void postgres_heads::clear() {
  young_.clear();
  old_.clear();
}

} // namespace troupe
