// Compares what happened with the session service, one call at a time: the
// stored changes give the order, the model says what each had to come to, and
// each answer must have been true at some moment of its call.

#pragma once

#include "../proof/session_model.hpp"
#include "history.hpp"
#include "plan.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace troupe::testing {

class verdict {
public:
  /// Both outlive it.
  verdict(const plan& chosen, const history& told);

  /// What is wrong with what was stored and with what was answered.
  std::vector<std::string> judge();

  /// The sessions that are there at the end.
  std::vector<session_key> keys() const { return at_.back().sessions(); }

  /// What is wrong with what is found there.
  std::vector<std::string>
  compare(const std::map<session_key, session>& found) const;

private:
  // -- what was stored, in verdict.cpp
  void replay();
  void replay_create(const store_change& change, session_model& model);
  void replay_append(const store_change& change, session_model& model);
  event expect(const store_change& change);
  void check_revisions(const store_change& change, const session_model& model);

  // -- what was answered, in verdict_answers.cpp
  void judge(const call_record& call);
  void judge_refusal(const call_record& call);
  void judge_append(const call_record& call);
  void judge_create(const call_record& call);
  void judge_get(const call_record& call);
  void judge_list(const call_record& call);
  void judge_removal(const call_record& call);
  void judge_run(const run_record& run);
  bool is_reason(const run_record& run) const;
  bool may_be_gone(const run_record& run) const;
  bool is_being_removed(const session_key& key,
                        std::size_t before,
                        std::size_t after) const;
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
  /// The model when so many changes were stored.
  std::vector<session_model> at_;
  /// Where each event is, by session and id; the last one if there are several.
  std::map<std::pair<session_key, std::string>, std::vector<std::size_t>>
    events_;
  std::multimap<std::string, const call_record*> calls_by_id_;
  /// Calls of an ordered writer behind one that failed.
  std::set<const call_record*> behind_failures_;
  std::map<std::string, const call_record*> created_by_token_;
  std::vector<std::string> findings_;
};

session_key key_of(const owner_name& owner);

} // namespace troupe::testing
