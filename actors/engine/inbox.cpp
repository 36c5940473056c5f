#include "troupe/actors/engine/inbox.hpp"

namespace troupe::actors {

letter_list inbox::take_all(letter* mark) noexcept {
  auto* newest = head_.exchange(mark, std::memory_order_acq_rel);
  letter_list taken;
  if (newest == awake_mark() || newest == closed_mark())
    return taken;
  while (newest != nullptr) {
    auto* older = newest->next;
    taken.push_front(letter_ptr(newest));
    newest = older;
  }
  return taken;
}

} // namespace troupe::actors
