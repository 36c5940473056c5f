// Judges a simulation of runs that are killed and recovered: by the stored
// changes, by the steps that programs began, and by the state at the end.

#pragma once

#include "troupe/core/session.hpp"

#include "recovery_history.hpp"
#include "run_outcome.hpp"

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::testing {

class recovery_verdict {
public:
  /// `told` must outlive the verdict.
  explicit recovery_verdict(const recovery_history& told);

  /// Checks the stored changes, the attempts, the steps and the lists; returns
  /// the violations.
  std::vector<std::string> judge();

  /// Compares the sessions as they are at the end with those of runs that
  /// nothing has disturbed. `found` has the sessions of all planned runs that
  /// exist. Returns the violations.
  std::vector<std::string> compare(const std::map<session_key, session>& found);

private:
  // A program gets a run by the message of the run, or by a claim.
  struct hold {
    std::size_t place = 0;
    writing by;
  };

  // The stored changes of one run, by their places.
  struct stored_run {
    std::vector<hold> holds;
    // Places at which the run was opened and closed, in turn.
    std::vector<std::size_t> opened;
    std::vector<std::size_t> closed;
    std::string holder;        // Of the newest mark that opened it.
    std::string former_holder; // Before that mark.
    // Places of the events that record the end of a step, by its key.
    std::map<std::string, std::size_t> ends;
    std::map<std::string, std::size_t> first_of_author;
  };

  void read_change(std::size_t place);
  void read_event(std::size_t place, const event& said);
  void read_marks(std::size_t place, const store_change& change);
  void
  judge_claim(const std::string& run, const hold& before, const hold& next);
  void judge(const attempt_record& attempt);
  void judge(const step_record& step);
  void judge(const list_record& list);
  std::optional<std::size_t> end_of(const step_record& step) const;
  bool
  was_open(const stored_run& run, std::size_t before, std::size_t after) const;
  bool stayed_open(const stored_run& run,
                   std::size_t before,
                   std::size_t after) const;
  bool may_have_failed(std::size_t run) const;
  void compare_whole(const planned_run& run, const session& found);
  void compare_part(const planned_run& run, const session& found);
  const planned_run* find_planned(std::string_view id) const;

  void find(std::string what) { findings_.push_back(std::move(what)); }

  const recovery_history& told_;
  std::map<std::string, stored_run, std::less<>> stored_;
  std::vector<std::string> findings_;
};

} // namespace troupe::testing
