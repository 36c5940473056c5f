// The connections of one store, and the times of attempts to connect.
//
// While the server is away, a caller waits for the next attempt that is due and
// fails with it. So callers that retry at once cause no more attempts, and none
// waits longer than one attempt.

#pragma once

#include "troupe/stores/postgres/schema.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
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

  /// A borrowed connection; goes back at the end if it is still usable. An
  /// exception that ends the lease drops it: statements may be queued, and a
  /// transaction may be open. The pool must outlive it.
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
    int exceptions_ = std::uncaught_exceptions();
  };

  /// Takes a free connection or opens a new one. `fresh` discards the free
  /// ones, which may have been lost. Fails with `errc::store_failed`. Safe from
  /// any thread.
  result<lease> take(bool fresh = false);

  /// Calls `work` with a connection. Calls it again with a new connection if
  /// the first one turns out to be lost. So `work` must be safe to run twice.
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

  /// Drops all connections, borrowed ones when they come back. Call it when
  /// they may lead to a server that is no longer the store's.
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
  // State of the attempts: due time and outcome of the last.
  std::chrono::steady_clock::time_point due_{};
  std::chrono::milliseconds pause_{0};
  std::uint64_t attempts_failed_ = 0;
  std::optional<error> last_failure_;
  std::minstd_rand random_{std::random_device{}()};
};

} // namespace troupe
