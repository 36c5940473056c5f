// What a commit writes to a PostgreSQL database: decided before anything is
// sent, on what the touched scopes are known to be. Pure.

#pragma once

#include "troupe/stores/postgres_heads.hpp"
#include "troupe/stores/store.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace troupe {

owner_name app_of(const owner_name& owner);
owner_name user_of(const owner_name& owner);

/// What exists under the names that a commit touches.
struct postgres_known {
  /// Null: there is no such scope.
  std::unordered_map<owner_name, std::optional<postgres_head>> scopes;
};

struct planned_scope {
  std::int64_t id;
  owner_name owner;
};

struct planned_row {
  std::int64_t id;
  const store_change* change;
  /// 0: the change does not touch it.
  std::int64_t session = 0;
  std::int64_t user = 0;
  std::int64_t app = 0;
};

struct planned_removal {
  std::int64_t id; ///< Of its row in the log.
  std::int64_t scope;
  owner_name owner;
};

/// New scopes, then rows, then removals.
struct planned_step {
  std::vector<planned_scope> scopes;
  std::vector<planned_row> rows;
  std::vector<planned_removal> removals;
};

class postgres_plan {
public:
  /// All that `changes` touch must be in `known`, and for each user that is
  /// removed its sessions. `last_id` is the log's last; `stamp` is random;
  /// `moved` have moved whatever their revision. Views the changes.
  postgres_plan(std::span<const store_change> changes,
                postgres_known known,
                std::int64_t last_id,
                std::int64_t stamp,
                std::vector<owner_name> moved = {});

  const std::vector<owner_name>& moved() const noexcept { return moved_; }

  const std::vector<planned_step>& steps() const noexcept { return steps_; }

  /// The log's last row when all is written.
  std::int64_t last_id() const noexcept { return last_id_; }

  /// What the scopes are then.
  const postgres_known& outcome() const noexcept { return known_; }

private:
  using found_head = std::optional<postgres_head>;

  void add(const store_change& change);
  void remove(const owner_name& owner);
  void remove_user(const owner_name& user);
  std::int64_t touch(const owner_name& owner, std::uint64_t revision);
  found_head& make(const owner_name& owner);
  void expect(const owner_name& owner, bool holds);
  planned_step& step_for_rows();

  postgres_known known_;
  std::int64_t last_id_;
  std::int64_t stamp_;
  std::vector<owner_name> moved_;
  std::vector<planned_step> steps_;
};

} // namespace troupe
