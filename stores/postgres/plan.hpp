// The rows that a commit writes to a PostgreSQL database. The plan is complete
// before anything is sent and computed without I/O.

#pragma once

#include "troupe/stores/postgres/heads.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe {

/// The existing scopes among those that a commit touches.
struct postgres_known {
  /// Unset if there is no such scope.
  std::unordered_map<owner_name, std::optional<postgres_head>> scopes;
};

struct planned_scope {
  std::int64_t id;
  owner_name owner;
  std::int64_t past = 0;         ///< Of a fork: id of its parent; else 0.
  std::int64_t first = 0;        ///< Revision of a session's creation.
  std::int64_t microseconds = 0; ///< Of a fork: time of its creation.
  /// Of a fork: all keys at its creation. Part of the change.
  const delta* keys = nullptr;
};

struct planned_row {
  std::int64_t id;
  const store_change* change;
  /// 0 if the change does not touch the scope.
  std::int64_t session = 0;
  std::int64_t user = 0;
  std::int64_t app = 0;
};

struct planned_run {
  std::int64_t scope;   ///< Id of its session.
  const run_mark* mark; ///< Part of the change.
};

struct planned_trim {
  std::int64_t scope;
  const store_change* change;
};

struct planned_removal {
  std::int64_t id; ///< Number of its row in the log.
  std::int64_t scope;
  owner_name owner;
};

/// Written in this order: new scopes, marks of runs, rows, trims, removals.
struct planned_step {
  std::vector<planned_scope> scopes;
  std::vector<planned_run> runs;
  std::vector<planned_row> rows;
  std::vector<planned_trim> trims;
  std::vector<planned_removal> removals;
};

class postgres_plan {
public:
  /// Checks and plans `changes`. `known` must contain every scope that they
  /// touch and all sessions of each user that they remove. `last_id` is the
  /// number of the last log row, `stamp` is random, and `moved` names owners
  /// that have moved whatever their revision. Keeps pointers to the changes.
  postgres_plan(std::span<const store_change> changes,
                postgres_known known,
                std::int64_t last_id,
                std::int64_t stamp,
                std::vector<owner_name> moved = {});

  const std::vector<owner_name>& moved() const noexcept { return moved_; }

  const std::vector<planned_step>& steps() const noexcept { return steps_; }

  /// Number of the last log row after the commit.
  std::int64_t last_id() const noexcept { return last_id_; }

  /// The scopes after the commit.
  const postgres_known& outcome() const noexcept { return known_; }

private:
  using found_head = std::optional<postgres_head>;

  void add(const store_change& change);
  void trim(const store_change& change);
  void mark_runs(const store_change& change);
  void judge_removal(const store_change& change);
  void remove(const owner_name& owner);
  void remove_user(const owner_name& user);
  std::int64_t touch(const owner_name& owner, std::uint64_t revision);
  found_head& make(const owner_name& owner);
  std::int64_t judge_past(const store_change& change);
  void expect(const owner_name& owner, bool holds);
  planned_step& step_for_rows();

  postgres_known known_;
  std::int64_t last_id_;
  std::int64_t stamp_;
  std::vector<owner_name> moved_;
  std::vector<planned_step> steps_;
};

} // namespace troupe
