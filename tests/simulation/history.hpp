// What happened in a simulation, as far as the outside can know: calls and
// their answers, runs, and what was written, in order.

#pragma once

#include "troupe/core/event.hpp"
#include "troupe/core/session_request.hpp"
#include "troupe/stores/store.hpp"

#include <cstddef>
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
};

std::string_view to_string(call_kind kind) noexcept;

/// One call of the session service. Moments are numbers of changes that were
/// stored then.
struct call_record {
  call_kind kind{};
  session_key key; ///< As far as the call names it.
  create_request created;
  event said;
  append_options how;
  get_options wanted;
  list_request listed;

  std::size_t client = 0;
  std::size_t place_in_burst = 0; ///< Calls of one burst are not awaited.
  /// Sent by the ordered writer of the burst and the session.
  bool is_ordered = false;
  std::size_t burst = 0;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t faults_before = 0;
  std::size_t faults_after = 0;
  std::size_t answers = 0;
  /// "ok" or the name of the error's code.
  std::string code;
  std::string reason;
  /// The runtime was shutting down, or its process had ended, by the answer.
  bool was_closing = false;
  bool was_dead = false;

  std::optional<session> fetched;
  event_ptr stored;
  bool removed = false;
  json state;
  session_page page;
};

/// One run, and what its holder was given of it.
struct run_record {
  session_key key;
  std::string invocation_id;
  std::size_t before = 0;
  std::size_t after = 0;
  std::size_t faults_before = 0;
  std::size_t faults_after = 0;
  /// What may end it.
  bool may_be_rejected = false;
  bool is_cancelled = false;
  bool has_deadline = false;
  std::size_t ends = 0;
  std::string code;
  std::string reason;
  std::vector<event_ptr> taken;
  /// How many changes were stored when each was handed out.
  std::vector<std::size_t> taken_at;
  bool was_closing = false;
  bool was_dead = false;
};

struct history {
  /// Stable addresses: completions hold them.
  std::deque<call_record> calls;
  std::deque<run_record> runs;
  /// What stores have written, in order. Where the place has gone back is a
  /// change of nobody's.
  std::vector<store_change> written;
  /// Where the place has gone back, by number in `written`: how many changes
  /// were written at the moment to which it went back.
  std::map<std::size_t, std::size_t> losses;
  /// What was recorded for an event that says this token.
  std::map<std::string, delta, std::less<>> recorded;
  /// What agents found wrong while they ran, by the run's id; that of a session
  /// that was removed meanwhile may have lost its events.
  std::vector<std::pair<std::string, std::string>> complaints;
  std::size_t crashes = 0;
  std::size_t restarts = 0;
  std::size_t failed_commits = 0;
  std::size_t lost_answers = 0; ///< Commits written and reported as failed.
  std::size_t failed_reads = 0;

  /// How often a store has failed, in any way.
  std::size_t faults() const noexcept {
    return failed_commits + lost_answers + failed_reads;
  }

  void note_commit(std::span<const store_change> changes);

  /// Notes that the place goes back to before the newest `count` commits, as
  /// far as there are any: the moment to which it does.
  std::optional<std::size_t> lose_commits(std::size_t count);

  /// What the place holds: what was written and has not been lost.
  const std::vector<store_change>& kept() const noexcept { return kept_; }

  std::string new_token() { return "t" + std::to_string(++tokens_); }

private:
  struct commit {
    std::size_t moment = 0; // When it was written.
    std::size_t kept = 0;   // What the place held before.
  };

  std::size_t tokens_ = 0;
  std::vector<store_change> kept_;
  std::vector<commit> commits_;
};

} // namespace troupe::testing
