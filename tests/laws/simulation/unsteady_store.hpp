// A store that takes time, fails at random, and may lose its process. It
// records every change that it has written.

#pragma once

#include "../../forwarding_store.hpp"
#include "dice.hpp"
#include "history.hpp"
#include "shared_place.hpp"
#include "world.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace troupe::testing {

/// Rates of failures (one in so many; 0: never) and durations.
struct store_habits {
  std::chrono::nanoseconds commit_time{0};
  std::chrono::nanoseconds load_time{0};
  std::size_t commit_fails = 0;
  /// The commit is written, but reported as failed.
  std::size_t commit_is_unknown = 0;
  std::size_t load_fails = 0;
  std::size_t look_fails = 0;
  /// A sign of life is not written. A program without signs of life is one that
  /// is only slow.
  std::size_t renewal_fails = 0;
  /// A program that has died stays the holder of its runs until the lease has
  /// passed. Without this, other programs see at once that it has died.
  bool keeps_dead_holders = false;
  /// The place loses its last commits.
  std::size_t place_loses = 0;
};

/// The store of one process, until that process ends.
class unsteady_store final : public forwarding_store {
public:
  unsteady_store(world& in,
                 history& told,
                 shared_place& place,
                 store_habits habits,
                 std::uint64_t seed);

  /// Marks the process as ended: later calls have no effect.
  void die() noexcept { is_dead_ = true; }

  bool is_dead() const noexcept { return is_dead_; }

  /// Ends all failures and delays.
  void recover() noexcept {
    habits_ = {.keeps_dead_holders = habits_.keeps_dead_holders};
  }

  result<commit_outcome> commit(std::span<const store_change> changes) override;
  result<std::vector<moved_owner>> changed_elsewhere() override;
  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override;
  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override;
  result<std::optional<stored_session>>
  load_session_at(const session_key& key,
                  std::uint64_t revision,
                  std::size_t events_max) override;

  // So that a seed has the same history over every store.
  result<std::optional<earlier_shared_state>>
  load_shared_state_at(const session_key&, std::uint64_t) override {
    return std::nullopt;
  }

  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override;
  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override;
  result<std::vector<session_row>> list(const row_query& query) override;
  result<std::vector<open_run>> list_runs(const run_query& query) override;
  result<void> renew_holder(const std::string& id) override;
  result<void> remove_holder(const std::string& id) override;

private:
  template <class Read>
  auto read(const Read& from) -> decltype(from());
  result<commit_outcome> write(std::span<const store_change> changes);

  void lose_newest_commits();

  world& world_;
  history& told_;
  shared_place& place_;
  store_habits habits_;
  const std::uint64_t program_;
  dice chance_;
  bool is_dead_ = false;
};

} // namespace troupe::testing
