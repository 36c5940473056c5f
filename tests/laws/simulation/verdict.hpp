// Compares a history with the sequential session model. The stored changes give
// the order, and the model gives the result of each. Every answer must have
// been true at some moment of its call.

#pragma once

#include "../proof/session_model.hpp"
#include "history.hpp"
#include "plan.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace troupe::testing {

class verdict {
public:
  /// Both must outlive the verdict.
  verdict(const plan& chosen, const history& told);

  /// Checks the stored changes and the answers; returns the violations.
  std::vector<std::string> judge();

  /// The keys of the sessions that exist at the end.
  std::vector<session_key> keys() const { return at_.back().sessions(); }

  /// Compares `found` with the model at the end; returns the violations.
  std::vector<std::string>
  compare(const std::map<session_key, session>& found) const;

  /// Compares a session as it was read at an earlier revision, at the end.
  std::vector<std::string> compare_earlier(const session& found) const;

private:
  // An event in the log of one session, since the change `place`: its own
  // append, or the creation of a fork that has the event from its parent.
  struct stored_event {
    std::size_t place = 0;
    std::uint64_t number = 0;
    event_ptr event;
    bool is_shared = false;
  };

  // -- stored changes, in verdict.cpp ----
  void replay();
  void replay_create(const store_change& change, session_model& model);
  void replay_append(const store_change& change, session_model& model);
  void replay_write(const store_change& change, session_model& model);
  event expect(const store_change& change);
  void check_revisions(const store_change& change, const session_model& model);

  // -- answers, in verdict_answers.cpp ----
  void judge(const call_record& call);
  void judge_refusal(const call_record& call);
  void judge_append(const call_record& call);
  void judge_create(const call_record& call);
  void judge_write(const call_record& call);
  void judge_get(const call_record& call);
  void judge_list(const call_record& call);
  void judge_removal(const call_record& call);
  void judge_run(const run_record& run);
  bool is_stored(const session_key& key,
                 const event& said,
                 std::size_t moment) const;

  // -- readers, in verdict_readers.cpp ----
  void judge(const follow_record& reader);
  const stored_event* judge_taken(const follow_record& reader);
  bool follows(const follow_record& reader,
               const stored_event& last,
               const stored_event& next) const;
  bool is_first(const follow_record& reader,
                const stored_event& next,
                std::size_t taken_at) const;
  bool was_acknowledged_before(const follow_record& reader,
                               const stored_event& next) const;
  bool is_beyond(const follow_record& reader, std::size_t moment) const;
  bool is_reason(const follow_record& reader, const stored_event* last) const;
  void judge_end(const follow_record& reader, const stored_event* last);
  bool is_reason(const run_record& run) const;
  bool may_be_gone(const run_record& run) const;
  bool is_being_removed(const session_key& key,
                        std::size_t before,
                        std::size_t after) const;
  // -- lost updates, in verdict_losses.cpp ----
  void note_losses(const store_change& change, const session_model& model);
  void judge_losses(const run_record& run);
  void judge_refused_writes();

  // -- rewinds, in verdict_rewinds.cpp ----
  void judge_rewind(const call_record& call);
  bool is_rewind_refused(const call_record& call, std::size_t moment) const;
  bool was_rewound(const session_key& key,
                   std::size_t before,
                   std::size_t after) const;

  // -- forks, in verdict_forks.cpp ----
  void replay_fork(const store_change& change, session_model& model);
  event_ptr stored_as(const session_key& key, const event& of_model) const;
  void check_origin(const store_change& creation);
  const call_record* cause_of_fork(const store_change& creation,
                                   const event& origin) const;
  bool is_fork_refused(const call_record& call, std::size_t moment) const;
  void judge_fork(const call_record& call);

  void judge_order();
  void judge_writers();
  bool was_lost(std::size_t before, std::size_t after) const;
  bool was_removed(const session_key& key,
                   std::size_t before,
                   std::size_t after) const;
  void check_cut(const call_record& call, bool with_events);
  bool is_model_refusing(const call_record& call, std::size_t moment) const;
  bool touches(std::size_t place, scope where, const session_key& key) const;
  template <class Holds>
  bool once(const call_record& call, const Holds& holds) const;
  std::string name(const call_record& call) const;

  void find(std::string what) { findings_.push_back(std::move(what)); }

  const plan& plan_;
  const history& told_;
  /// The model after each number of stored changes.
  std::vector<session_model> at_;
  /// The place of the creation of each session after as many changes.
  std::vector<std::map<session_key, std::size_t>> births_;
  /// In the order of changes, by session and id. A lost event that was stored
  /// again is there several times, and so is a shared one of sessions that had
  /// the same key.
  std::map<std::pair<session_key, std::string>, std::vector<stored_event>>
    events_;
  std::multimap<std::string, const call_record*> calls_by_id_;
  /// Places of each write to shared state, by id, with the answer to it.
  std::multimap<std::string, std::pair<std::size_t, shared_write>> writes_;
  std::multimap<std::string, const call_record*> writes_by_id_;
  /// Calls of an ordered writer made after one that failed.
  std::set<const call_record*> behind_failures_;
  std::map<std::string, const call_record*> created_by_token_;
  /// Updates that were lost in stored events, by run.
  std::map<std::string, std::vector<lost_update>> lost_;
  /// Those whose event was acknowledged to its agent, by event and key.
  std::set<std::pair<std::string, std::string>> kept_losses_;
  std::vector<std::string> findings_;
};

template <class Holds>
bool verdict::once(const call_record& call, const Holds& holds) const {
  for (auto moment = call.before; moment <= call.after; ++moment)
    if (holds(moment))
      return true;
  return false;
}

session_key key_of(const owner_name& owner);

/// The events of a whole log that no rewind has taken back.
std::vector<event_ptr> live_events(const std::vector<event_ptr>& log);

/// Makes the write of the call in the model.
result<shared_write> write_in(session_model& model, const call_record& call);

} // namespace troupe::testing
