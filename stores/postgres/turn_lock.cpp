#include "troupe/stores/postgres/turn_lock.hpp"

#include "troupe/stores/postgres/schema.hpp"

#include <utility>
#include <vector>

namespace troupe {

namespace {

namespace transaction = postgres_transaction;

// Time for the answer of the server, beside the wait for the lock.
constexpr std::chrono::milliseconds answer_time{2'000};

// More than the turns of all processes in the line.
constexpr std::chrono::milliseconds longest_wait{2'000};

// Both limits in milliseconds, until the end of the transaction. The second one
// takes the turn from a process that is stopped; it is longer than a commit on
// a slow disk, during which this connection is idle, too.
constexpr postgres_statement limit_turn
  = {"limit_turn",
     "SELECT set_config('lock_timeout', $1::bigint::text, true),"
     " set_config('idle_in_transaction_session_timeout',"
     " $2::bigint::text, true)"};

// An owner that is wanted has a shared lock, so no other process can lock it
// alone.
constexpr postgres_statement want_owner
  = {"want_owner", "SELECT pg_advisory_xact_lock_shared($1)"};

constexpr postgres_statement count_wanted
  = {"count_wanted",
     "SELECT count(*) FROM unnest($1::bigint[]) AS wanted(lock)"
     " WHERE NOT pg_try_advisory_xact_lock(lock)"};

} // namespace

bool postgres_turn_lock::enter(std::span<const owner_name> wanted,
                               std::chrono::milliseconds patience,
                               const std::function<void()>& /*meanwhile*/) {
  leave();
  auto taken = pool_.take();
  if (!taken)
    return false;
  auto& connection = **taken;
  connection.queue(transaction::begin);
  connection.queue(
    limit_turn,
    postgres_parameters().add(longest_wait.count()).add(4 * patience.count()));
  for (const auto& owner : wanted)
    connection.queue(want_owner, postgres_parameters().add(lock_of(owner)));
  connection.queue(
    transaction::take_lock,
    postgres_parameters().add(schema_lock("turn/", pool_.setup().schema)));
  // A connection that has failed is closed, which ends its transaction.
  if (!connection.run("wait for a turn to write", longest_wait + answer_time))
    return false;
  place_.emplace(*std::move(taken));
  return true;
}

// The commit that follows tells if the server has failed.
bool postgres_turn_lock::is_wanted(std::span<const owner_name> owners) {
  auto taken = pool_.take();
  if (!taken)
    return false;
  std::vector<std::int64_t> locks;
  for (const auto& owner : owners)
    locks.push_back(lock_of(owner));
  auto& connection = **taken;
  connection.queue(count_wanted, postgres_parameters().add(locks));
  const auto answers
    = connection.run("look for processes that wait for a turn", answer_time);
  return answers && answers->front().number(0, 0) > 0;
}

void postgres_turn_lock::leave() noexcept {
  if (!place_)
    return;
  auto& connection = **place_;
  connection.queue(transaction::roll_back);
  // Not read: after a failure the connection is closed, as above.
  static_cast<void>(connection.run("end a turn to write", answer_time));
  place_.reset();
}

std::int64_t postgres_turn_lock::lock_of(const owner_name& owner) const {
  return schema_lock(
    "wanted/", pool_.setup().schema + '\0' + owner.app + '\0' + owner.user);
}

} // namespace troupe
