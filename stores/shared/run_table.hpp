// The open runs of a store in memory, and the holders of them.
//
// Invariant: a session that is removed has no runs. The store calls `erase`.

#pragma once

#include "troupe/stores/shared/run_gate.hpp"
#include "troupe/stores/store.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// A store forgets a holder that has no open runs when it has been silent for
/// so long.
inline constexpr std::chrono::hours silent_holder_kept{24};

/// Not thread-safe.
class run_table {
public:
  /// Opens and closes runs of a session, in this order.
  void apply(const owner_name& session,
             std::span<const run_mark> marks,
             timestamp now);

  /// Removes all runs of a session.
  void erase(const owner_name& session);

  /// Notes a sign of life of a holder.
  void renew(const std::string& holder, timestamp now);

  void forget(const std::string& holder) { holders_.erase(holder); }

  /// Returns a page, as `store::list_runs` does.
  std::vector<open_run> list(const run_query& query, timestamp now) const;

  /// Adds the open runs of a session.
  void add_to(run_gate& gate, const owner_name& session, timestamp now) const;

  /// Returns the sessions that have runs, in order; a session is named once for
  /// each run.
  std::vector<owner_name> sessions() const;

private:
  // Time since the last sign of life; unset if the holder is not known.
  std::optional<std::chrono::microseconds> silence_of(const std::string& holder,
                                                      timestamp now) const;

  struct kept_run {
    std::string agent;
    std::string holder;
    timestamp opened;
  };

  // By session and id.
  std::map<std::pair<owner_name, std::string>, kept_run> runs_;
  // Time of the last sign of life.
  std::map<std::string, timestamp> holders_;
};

} // namespace troupe
