// The connections of one store, and when to try for a new one.
//
// Whoever needs a connection while the server is away waits for the next
// attempt that is due, and fails if it does: so callers that try again at once
// are slowed down to the attempts, and none waits longer than one of them.

#pragma once

#include "troupe/stores/postgres_schema.hpp"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace troupe {

class postgres_pool {
public:
  postgres_pool(std::string url, postgres_setup setup)
    : url_(std::move(url)),
      setup_(std::move(setup)) {}

  postgres_pool(const postgres_pool&) = delete;
  postgres_pool& operator=(const postgres_pool&) = delete;

  /// A connection on loan; goes back when it ends, if it is still usable. The
  /// pool must outlive it.
  class lease {
  public:
    lease(postgres_pool& pool,
          std::unique_ptr<postgres_connection> lent,
          std::uint64_t generation)
      : pool_(&pool),
        lent_(std::move(lent)),
        generation_(generation) {}

    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) = delete;
    ~lease();

    postgres_connection* operator->() const noexcept { return lent_.get(); }

    postgres_connection& operator*() const noexcept { return *lent_; }

  private:
    postgres_pool* pool_;
    std::unique_ptr<postgres_connection> lent_;
    std::uint64_t generation_;
  };

  /// One that is free, or a new one. `fresh`: not one that may have been lost
  /// while it was free. Fails with `errc::store_failed`. Safe from any thread.
  result<lease> take(bool fresh = false);

  /// Calls `work` with a connection, and once more with a new one if the first
  /// had been lost while it was free. For work that may be done twice.
  template <class Work>
  auto with(Work work) -> decltype(work(std::declval<postgres_connection&>())) {
    for (bool again = false;; again = true) {
      auto taken = take(again);
      if (!taken)
        return taken.error();
      auto outcome = work(**taken);
      if (outcome || again || (*taken)->is_usable())
        return outcome;
    }
  }

  /// Drops all connections, those on loan when they come back: they may lead to
  /// a server that is not the store's any more.
  void renew();

  const postgres_setup& setup() const noexcept { return setup_; }

private:
  result<std::unique_ptr<postgres_connection>> connect();

  const std::string url_;
  const postgres_setup setup_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<postgres_connection>> free_;
  std::size_t lent_ = 0;
  std::uint64_t generation_ = 0; ///< Number of renewals.
  // -- of the attempts: when the next is due, and what the last came to.
  std::chrono::steady_clock::time_point due_{};
  std::chrono::milliseconds pause_{0};
  std::uint64_t attempts_failed_ = 0;
  std::optional<error> last_failure_;
  std::minstd_rand random_{std::random_device{}()};
};

} // namespace troupe
