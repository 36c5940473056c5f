// The tables `open_runs`, one row for each open run, and `run_holders`, the
// last sign of life of each process that has one.
//
// Times are those of the machine. Invariant: the session of a run exists.

#pragma once

#include "troupe/stores/shared/run_gate.hpp"
#include "troupe/stores/sqlite/database.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Works inside transactions of its callers.
class sqlite_runs {
public:
  /// `database` must outlive it.
  explicit sqlite_runs(const sqlite_database& database);

  /// Opens and closes runs of a session, in this order.
  void apply(std::int64_t session, std::span<const run_mark> marks);

  /// Adds the open runs of a session, which is number `session`.
  void add_to(run_gate& gate, const owner_name& name, std::int64_t session);

  /// Removes all runs of a session.
  void erase(std::int64_t session) { erase_.run(session); }

  /// Notes a sign of life of a holder. Forgets the holders without runs that
  /// have been silent for long.
  void renew(std::string_view holder);

  void forget(std::string_view holder) { forget_.run(holder); }

  /// Implements `store::list_runs`.
  std::vector<open_run> list(const run_query& query);

private:
  void note_life(std::string_view holder, std::int64_t now);

  sqlite_statement open_;
  sqlite_statement hand_over_;
  sqlite_statement close_;
  sqlite_statement of_session_;
  sqlite_statement erase_;
  sqlite_statement renew_;
  sqlite_statement forget_silent_;
  sqlite_statement forget_;
  sqlite_statement list_;
  sqlite_statement list_session_;
};

/// Returns a line for each damaged row, and for each run without a session.
std::vector<std::string> check_sqlite_runs(const sqlite_database& database);

} // namespace troupe
