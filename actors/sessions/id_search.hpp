// Search in the store for event ids that a session has no longer in memory.
//
// Invariant: an answer, and the filter of all ids, are used only as far as they
// cover the session's events. Both are dropped when the session loads, since
// the loaded session may be another one, or may lack events.

#pragma once

#include "troupe/actors/messages.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// Not thread-safe: for one session.
class id_search {
public:
  /// Number of the load that the answers must be of.
  std::uint64_t loads() const noexcept { return loads_; }

  /// Adds the id of an accepted event to the filter, if there is one.
  void note(std::string_view id, std::uint64_t number);

  /// Returns true if no event up to `number` has the id.
  bool excludes(std::string_view id, std::uint64_t number) const;

  /// Drops the answer for an id if it does not cover event `number`.
  void expire(const std::string& id, std::uint64_t number);

  /// The answer for an id; null if there is none. It is a null event if no
  /// event has the id.
  const event_ptr* find(const std::string& id) const;

  /// Counts a query of a session at `revision`. Returns true if it is time to
  /// ask for a filter, too; `under_way` has the events that the store does not
  /// have yet.
  bool count_query(std::uint64_t revision,
                   const std::vector<append*>& under_way);

  /// Takes the answer to a query for a filter. The filter covers the events up
  /// to `newest`, since accepted ids are noted meanwhile.
  void take_filter(find_events& answered, std::uint64_t newest);

  /// Takes the answer to another query of this load. Returns false if the store
  /// has failed.
  bool take(find_events& answered);

  /// Frees the found events, which may be large. The check matters: every batch
  /// of letters passes here, and clearing an empty map wipes its buckets.
  void forget_found() {
    if (!found_.empty())
      found_ = {};
  }

  /// Starts anew after a load.
  void restart();

private:
  // The store's answer for ids that were asked for.
  std::unordered_map<std::string, event_ptr> found_;
  // The newest event that the answer covers.
  std::uint64_t covered_ = 0;
  // Filter of all ids; null until several queries were sent.
  std::unique_ptr<id_filter> filter_;
  // The newest event in the filter.
  std::uint64_t filtered_ = 0;
  bool making_filter_ = false;
  // Hashes of ids that were accepted while the filter is made.
  std::vector<std::uint32_t> since_;
  // Queries since the last load or filter.
  std::uint64_t queries_ = 0;
  std::uint64_t loads_ = 0;
};

} // namespace troupe::actors
