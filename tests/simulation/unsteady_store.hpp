// A store that takes its time, fails now and then, and may lose its process;
// what it has written it also writes down.

#pragma once

#include "troupe/stores/store.hpp"

#include "dice.hpp"
#include "history.hpp"
#include "shared_place.hpp"
#include "world.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace troupe::testing {

/// How often (one in so many; 0: never) and for how long.
struct store_habits {
  std::chrono::nanoseconds commit_time{0};
  std::chrono::nanoseconds load_time{0};
  std::size_t commit_fails = 0;
  /// It is written, but reported as failed.
  std::size_t commit_is_unknown = 0;
  std::size_t load_fails = 0;
  std::size_t look_fails = 0;
  /// The place goes back behind its last commits.
  std::size_t place_loses = 0;
};

/// One process' way to the place, for as long as that lasts.
class unsteady_store final : public store {
public:
  unsteady_store(world& in,
                 history& told,
                 shared_place& place,
                 store_habits habits,
                 std::uint64_t seed);

  /// The process has ended: nothing that it still does has any effect.
  void die() noexcept { is_dead_ = true; }

  bool is_dead() const noexcept { return is_dead_; }

  /// From here on it does what it should.
  void recover() noexcept { habits_ = {}; }

  result<commit_outcome> commit(std::span<const store_change> changes) override;
  result<std::vector<moved_owner>> changed_elsewhere() override;
  result<std::optional<stored_scope>>
  load_scope(const owner_name& owner) override;
  result<std::optional<stored_session>>
  load_session(const session_key& key, const load_options& options) override;
  result<std::vector<event_ptr>> load_events(const session_key& key,
                                             std::uint64_t first,
                                             std::uint64_t last) override;
  result<std::vector<event_ptr>>
  find_events(const session_key& key,
              std::span<const std::string> ids) override;
  std::optional<lost_history> take_lost_history() override;
  result<std::vector<session_row>> list(const row_query& query) override;
  result<std::vector<std::string>>
  check(const std::function<void(double)>& on_progress) override;
  result<void> close() override;

private:
  template <class Read>
  auto read(const Read& from) -> decltype(from());
  result<commit_outcome> write(std::span<const store_change> changes);

  void lose_newest_commits();

  world& world_;
  history& told_;
  shared_place& place_;
  const std::unique_ptr<store> within_;
  store_habits habits_;
  dice chance_;
  bool is_dead_ = false;
};

} // namespace troupe::testing
