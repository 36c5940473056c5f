// Decides which runs of a commit may not open, because another run of their
// session is open (`run_mark::alone_after`), or because they cannot be taken
// from their holder (`run_mark::taken_from`).
//
// A store adds the open runs of the sessions in question, which it has read
// under the lock of the commit, and writes nothing if a run is kept out.

#pragma once

#include "troupe/stores/store.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace troupe {

/// Returns the sessions with a run that may be kept out, each once.
std::vector<owner_name> sessions_to_gate(std::span<const store_change> changes);

/// For one commit. Not thread-safe.
class run_gate {
public:
  /// Adds an open run of one of the `sessions_to_gate`. `silent` is the time
  /// since the last sign of life of the holder; unset if it is not known.
  void add(const owner_name& session,
           std::string invocation_id,
           std::string holder,
           std::optional<std::chrono::microseconds> silent);

  /// Returns the runs that are kept out. A mark sees the marks before it in the
  /// commit; one whose run is kept out has no effect on later ones. Call once,
  /// after all runs were added.
  std::vector<kept_out_run> judge(std::span<const store_change> changes) &&;

private:
  using run_name = std::pair<owner_name, std::string>;

  void apply(const owner_name& session, const run_mark& mark);
  void erase_user(const owner_name& user);
  bool is_silent(const std::string& holder,
                 std::chrono::microseconds longer_than) const;
  bool can_be_taken(const owner_name& session, const run_mark& mark) const;
  std::optional<std::string> find_other(const owner_name& session,
                                        const run_mark& mark) const;

  // Holders by session and id of the run.
  std::map<run_name, std::string> runs_;
  // Silence of the known holders.
  std::map<std::string, std::chrono::microseconds> silences_;
};

} // namespace troupe
