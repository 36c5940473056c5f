// The history of a simulation as a user can observe it: calls and their
// answers, runs, and stored changes, in order.

#pragma once

#include "troupe/contexts/lost_update.hpp"
#include "troupe/core/event.hpp"
#include "troupe/core/session.hpp"
#include "troupe/core/shared_write.hpp"
#include "troupe/runtime/follower.hpp"
#include "troupe/runtime/rewind.hpp"
#include "troupe/stores/store.hpp"

#include "changes.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::testing {

enum class call_kind : std::uint8_t {
  create,
  append,
  get,
  list,
  remove,
  remove_user,
  user_state,
  app_state,
  write,
  rewind,
  fork,
};

std::string_view to_string(call_kind kind) noexcept;

/// A write of one key of a user or an app, without a session.
struct wanted_write {
  std::string id;
  bool of_user = false;
  wanted_change change;
  std::optional<std::uint64_t> expected_revision;
};

/// A rewind to a revision, or to before a run.
struct wanted_rewind {
  std::optional<std::uint64_t> to;
  std::string run;
  std::optional<std::uint64_t> expected;
};

/// A fork of a session, under another id.
struct wanted_fork {
  std::string id;
  fork_options how;
};

/// One call of the session service. A moment is the number of changes stored by
/// then.
struct call_record {
  call_kind kind{};
  session_key key; ///< Filled in as far as the call names a session.
  create_request created;
  troupe::event event;
  append_options how;
  get_options wanted;
  list_request listed;
  wanted_write write;
  wanted_rewind rewind;
  wanted_fork fork;

  std::size_t client = 0;
  std::size_t place_in_burst = 0; ///< Calls of a burst overlap.
  /// True if the ordered writer of the burst and the session sent it.
  bool is_ordered = false;
  std::size_t burst = 0;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t faults_before = 0;
  std::size_t faults_after = 0;
  std::size_t answers = 0;
  /// Number of calls that were answered by then, this one included.
  std::size_t answered_at = 0;
  /// "ok" or the name of the error code.
  std::string code;
  std::string reason;
  /// True if the runtime was shutting down, or its process had ended, when the
  /// answer came.
  bool was_closing = false;
  bool was_dead = false;

  std::optional<session> fetched;
  event_ptr stored;
  bool removed = false;
  std::optional<shared_write> wrote;
  std::optional<rewound_session> rewound;
  json state;
  session_page page;

  /// The session that the call reads, changes or makes.
  session_key target() const {
    return kind == call_kind::fork ? session_key{key.app, key.user, fork.id}
                                   : key;
  }
};

/// One run, and the events and the end that its holder received.
struct run_record {
  session_key key;
  std::string invocation_id;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t faults_before = 0;
  std::size_t faults_after = 0;
  /// Conditions that may end the run.
  bool may_be_rejected = false;
  bool is_cancelled = false;
  bool has_deadline = false;
  std::size_t ends = 0;
  std::string code;
  std::string reason;
  std::vector<event_ptr> taken;
  /// `run::lost_updates` and their number.
  std::vector<lost_update> lost;
  std::size_t lost_count = 0;
  /// Number of stored changes when each event was handed out.
  std::vector<std::size_t> taken_at;
  bool was_closing = false;
  bool was_dead = false;
};

/// A plain write of a key by an agent that has read it.
struct based_write {
  std::string key;
  json seen; ///< Null if the key was absent.
};

/// An event with such writes alone.
struct based_event {
  enum class end : std::uint8_t { unknown, kept, refused };

  std::string invocation_id;
  std::vector<based_write> writes;
  /// Numbers of stored changes when it was emitted, and when its agent went on.
  std::size_t before = 0;
  std::size_t after = 0;
  /// Outcome, as its agent has learned it.
  end came_to = end::unknown;
};

/// A reader that follows a session, and the events that it received.
struct follow_record {
  session_key key;
  follow_options how;
  std::size_t client = 0;
  std::size_t burst = 0;
  /// Number of calls that were made, and that were answered, before it.
  std::size_t calls_before = 0;
  std::size_t answered_before = 0;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t faults_before = 0;
  std::size_t faults_after = 0;
  std::vector<event_ptr> taken;
  /// Number of stored changes when each event was handed out.
  std::vector<std::size_t> taken_at;
  std::size_t ends = 0;
  std::string code; ///< "ok" if the reader was closed.
  std::string reason;
  bool is_closed = false;
  bool was_closing = false;
  bool was_dead = false;
  /// True if the reader waited at the end, long after the last change.
  bool is_waiting_at_end = false;
  std::optional<std::uint64_t> revision_at_end;
};

/// The program that wrote a change, and the time since the start.
struct writing {
  std::uint64_t program = 0; ///< Seed of the program.
  std::chrono::nanoseconds at{};
};

struct history {
  /// A deque, because completions hold the addresses of the records.
  std::deque<call_record> calls;
  std::deque<run_record> runs;
  std::deque<follow_record> readers;
  /// Changes written by the stores, in order. When the place loses commits,
  /// this is one entry, made by no program.
  std::vector<store_change> written;
  /// One entry per entry of `written`.
  std::vector<writing> writings;
  /// Programs that have closed their runs in good order
  /// (`store::remove_holder`), with the time.
  std::map<std::uint64_t, std::chrono::nanoseconds> left;
  /// Times of the signs of life (`store::renew_holder`) of each program.
  std::map<std::uint64_t, std::vector<std::chrono::nanoseconds>> signs;
  /// The losses of the place, by index in `written`. The value is the number of
  /// changes at the moment to which the place went back.
  std::map<std::size_t, std::size_t> losses;
  /// The delta recorded for the event that has this token.
  std::map<std::string, delta, std::less<>> recorded;
  /// Events of agents that set keys which they have read, by token.
  std::map<std::string, based_event, std::less<>> overwriting;
  /// Failed checks of agents, with the id of the run. A run of a session that
  /// was removed meanwhile may have lost its events.
  std::vector<std::pair<std::string, std::string>> complaints;
  std::size_t answered = 0; ///< Number of calls that were answered.
  std::size_t crashes = 0;
  std::size_t restarts = 0;
  std::size_t failed_commits = 0;
  std::size_t lost_answers = 0; ///< Commits written, but reported as failed.
  std::size_t failed_reads = 0;

  /// Number of failures of all stores, of any kind.
  std::size_t faults() const noexcept {
    return failed_commits + lost_answers + failed_reads;
  }

  void note_commit(std::span<const store_change> changes, const writing& how);

  /// Records that the place loses its newest `count` commits, as far as it has
  /// so many. Returns the moment to which it goes back.
  std::optional<std::size_t> lose_commits(std::size_t count);

  /// The content of the place: the changes written and not lost.
  const std::vector<store_change>& kept() const noexcept { return kept_; }

  std::string new_token() { return "t" + std::to_string(++tokens_); }

private:
  struct commit {
    std::size_t moment = 0; // The moment at which it was written.
    std::size_t kept = 0;   // Number of changes in the place before it.
  };

  std::size_t tokens_ = 0;
  std::vector<store_change> kept_;
  std::vector<commit> commits_;
};

} // namespace troupe::testing
