// The writing side of the PostgreSQL store: commits, and the detection of
// changes by other processes.

#pragma once

#include "troupe/stores/postgres/heads.hpp"
#include "troupe/stores/postgres/history.hpp"
#include "troupe/stores/postgres/plan.hpp"
#include "troupe/stores/postgres/pool.hpp"
#include "troupe/stores/postgres/row_copy.hpp"
#include "troupe/stores/shared/hot_states.hpp"
#include "troupe/stores/shared/unreported_removals.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe {

/// Used by one thread at a time.
class postgres_writer {
public:
  /// The arguments must outlive it. `hot` are the states of readers, which it
  /// clears when the store loses its history.
  postgres_writer(postgres_pool& pool,
                  postgres_history& history,
                  hot_states& hot);

  /// Starts to watch the commits of other processes.
  result<void> open();

  /// Implements `store::commit`.
  result<commit_outcome> commit(std::span<const store_change> changes);

  /// Implements `store::changed_elsewhere`.
  result<std::vector<moved_owner>> changed_elsewhere();

  /// Implements `store::take_lost_history`.
  std::optional<lost_history> take_lost_history();

private:
  /// Takes the commit lock and inserts the commit's mark.
  result<postgres_history::new_mark> lock(postgres_connection& connection,
                                          std::string_view attempted);
  static error give_up(postgres_connection& connection, const error& why);
  result<commit_outcome> commit_locked(postgres_connection& connection,
                                       std::span<const store_change> changes,
                                       const postgres_history::new_mark& found,
                                       std::string_view attempted);
  result<commit_outcome> refuse_all(postgres_connection& connection,
                                    std::span<const store_change> changes,
                                    std::string_view attempted);
  result<void> change_history(postgres_connection& connection,
                              std::string_view attempted);
  result<void> catch_up(postgres_connection& connection,
                        std::string_view attempted);
  result<void> find_made_again(postgres_connection& connection,
                               std::string_view attempted);
  void forget_after_a_rest();
  result<postgres_known> look_up(postgres_connection& connection,
                                 std::span<const store_change> changes,
                                 std::string_view attempted);
  result<void> write(postgres_connection& connection,
                     const postgres_plan& plan,
                     std::string_view attempted);
  static result<void> queue_scopes(postgres_connection& connection,
                                   std::span<const planned_scope> scopes);

  postgres_pool& pool_;
  postgres_history& history_;
  hot_states& hot_;
  postgres_heads heads_;
  /// Distinguishes this store's rows from those of others.
  const std::int64_t writer_;
  postgres_row_copy copy_;
  /// Rows of other processes up to this one are known.
  std::int64_t seen_ = 0;
  /// Changes of others that commits have found, for the next
  /// `changed_elsewhere`.
  std::map<owner_name, std::optional<std::uint64_t>> unreported_;
  unreported_removals removals_;
  std::optional<lost_history> lost_;
  std::chrono::steady_clock::time_point looked_at_
    = std::chrono::steady_clock::now();
};

} // namespace troupe
