// State that a session has only over a store. Without a store each member keeps
// its initial value: no letter waits, and no query was sent.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/parts/id_filter.hpp"
#include "troupe/actors/sessions/held_answers.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

class owner_actor;

/// Search for event ids that are not in memory.
struct id_search {
  /// The store's answer for ids that were asked for; null: no event has the id.
  std::unordered_map<std::string, event_ptr> found;
  /// The newest event that the answer covers.
  std::uint64_t covered = 0;
  /// Filter of all ids; null until several queries were sent.
  std::unique_ptr<id_filter> filter;
  /// The newest event in the filter.
  std::uint64_t filtered = 0;
  bool making_filter = false;
  /// Hashes of ids that were accepted while the filter is made.
  std::vector<std::uint32_t> since;
  /// Queries since the last load or filter.
  std::uint64_t questions = 0;
  std::uint64_t loads = 0;
};

struct store_side {
  /// Number of commits that the queue has not answered.
  std::size_t commits = 0;
  /// Letters of answered commits that are decided again, in order.
  letter_list again;
  held_answers held_back;
  /// The commit of the climb under way, which already has its place in the
  /// store's queue.
  commit* reserved = nullptr;
  /// Letters that wait for events that are not in memory.
  letter_list waiting;
  bool fetching = false;
  /// Number of loads after which the session may be another one of the same
  /// key, or has fewer events. Reads and searches that started before such a
  /// load are repeated.
  std::uint64_t cuts = 0;
  bool removing = false;
  /// True while the store is asked if the first append repeats an older event.
  bool comparing = false;
  id_search ids;
  /// The removal that ended the session; answered last, with the letters that
  /// the session left.
  std::unique_ptr<remove> removal;
  bool is_removed = false;
  /// True if the session ends because its user is being removed.
  bool goes_with_user = false;
};

inline const store_side no_store_side{};

} // namespace troupe::actors
