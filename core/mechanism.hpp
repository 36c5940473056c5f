// The mechanisms behind the promises of docs/consistency.md, which tests can
// break one at a time to see that something notices.
//
// In a build without TROUPE_BREAKABLE all of them hold, and asking costs
// nothing.

#pragma once

#include <cstdint>

namespace troupe {

enum class mechanism : std::uint8_t {
  none,
  inbox_order,       ///< Letters of one sender are taken in their order.
  climb_order,       ///< Nothing is computed on an undecided event.
  drop_refused,      ///< What a wider owner refuses is dropped by all.
  decided_existence, ///< A session exists from its creation to its removal.
  expected_revision, ///< A caller's `expected_revision` is compared.
  known_roots,       ///< A reader gets the roots of the owners it passes.
  newest_view,   ///< A run's view of its session is not replaced by an older.
  drop_temp,     ///< `temp:` keys are taken out before an event is stored.
  failed_deltas, ///< What a failed step has recorded is discarded.
  answers_when_installed, ///< An append is answered when all owners have it.
  answers_when_durable,   ///< An append is answered when the store has it.
  told_failures,          ///< A commit that failed is not answered as durable.
  reads_when_durable,     ///< A read waits for what it is based on.
  generations,            ///< What builds on a failed commit is refused.
  reload,                 ///< An owner that is out of date loads again.
  queue_lock,       ///< What fills a place in the queue to the store locks it.
  store_revisions,  ///< A store writes only on top of what it holds.
  look_elsewhere,   ///< What other processes wrote is noticed.
  look_behind,      ///< And once more behind a commit, for what is shown.
  synced_commits,   ///< A durable commit is synced before it is answered.
  row_sums,         ///< Rows of a SQLite file are compared with their sums.
  event_ids,        ///< An event with an id that is known is a retry.
  compared_retries, ///< A retry is compared with what is stored.
  loaded_ids,       ///< Ids are loaded with their session.
  admission,        ///< What is under way on a session is bounded in number,
  byte_limits,      ///< and in bytes;
  runtime_limits,   ///< in all, too, and so are runs.
  leaving_memory,   ///< Idle sessions leave memory.
  write_order,      ///< A failed append cuts its writer's stream.
};

#ifdef TROUPE_BREAKABLE

/// Whether the environment variable TROUPE_BREAK names it; ends the program if
/// that names none. Thread-safe.
bool is_broken(mechanism which) noexcept;

#else

constexpr bool is_broken(mechanism /*which*/) noexcept {
  return false;
}

#endif

} // namespace troupe
