// The runs of a session: those that are active, and those that wait for their
// turn. Runs start in the order of their calls.

#pragma once

#include "troupe/actors/messages.hpp"
#include "troupe/actors/sessions/waiting_history.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Not thread-safe: for one session.
class run_desk {
public:
  struct active_run {
    ref<inbox_actor> invocation = {};
    caf::actor_id id = 0;
    /// Its invocation id.
    std::string run_id = {};
    /// Another process has recovered the run.
    bool is_taken_over = false;
    /// Older events are not kept for the run.
    std::uint64_t first_read = 0;
    /// Number of its message, once that is decided.
    std::uint64_t message = UINT64_MAX;
    /// Its message may get a lower number when it is decided again, so its
    /// newest events are kept by count, too.
    std::uint64_t newest_max = 0;
  };

  bool has_active() const noexcept { return !active_.empty(); }

  bool empty() const noexcept {
    return active_.empty() && waiting_.empty() && until_end_.empty();
  }

  const std::vector<active_run>& active() const noexcept { return active_; }

  /// The active run of this actor id; null if there is none.
  active_run* find(caf::actor_id run);

  /// Returns true if a run of this invocation id is active, other than that of
  /// the actor id `but`.
  bool has_active(const std::string& run_id, caf::actor_id but) const;

  /// Notes the claims of active runs among the events of the session that came
  /// after the runs' own messages or claims: those of other processes.
  void note_claims(const event_slice& events);

  /// Returns true if a run of this policy starts at once. While a letter waits
  /// for the end of all runs, none does.
  bool may_start(run_policy policy) const noexcept {
    return active_.empty()
           || (policy == run_policy::interleave && until_end_.empty());
  }

  /// Starts a run, or an active one anew, whose message is then not decided.
  void start(active_run granted);

  /// Lets a run wait for its turn.
  void queue(std::unique_ptr<start_run> next);

  /// Ends an active run. Returns false if there is none of this actor id.
  bool end(caf::actor_id run);

  /// The run whose turn it is; null if a run is active, or none waits.
  std::unique_ptr<start_run> take_next();

  /// All runs that wait, in order.
  letter_list take_waiting();

  /// Keeps a letter until no run is active.
  void await_end(std::unique_ptr<get> wanted) {
    until_end_.push_back(std::move(wanted));
  }

  /// The letters that wait until no run is active, in order.
  letter_list take_until_end() {
    return std::exchange(until_end_, letter_list());
  }

  /// Refuses the waiting run of this actor id, if there is one.
  void refuse(caf::actor_id run, const error& why);

  // -- the history that runs read ---------------------------------------------

  /// The oldest event that a run reads, if the session is at `revision` and
  /// `live` are its newest events; UINT64_MAX if none reads any.
  std::uint64_t oldest_read(std::uint64_t revision,
                            const event_slice& live) const;

  /// The largest number of events before its message that a run reads.
  std::uint64_t newest_max() const;

  /// Computes the oldest events of active runs again for a session that was
  /// loaded at `revision`. A run whose message is decided again reads the same
  /// number of events before it, under any new number of the message.
  void reload(std::uint64_t revision, const event_slice& live);

  // -- the view of the runs ---------------------------------------------------

  const std::shared_ptr<session_view>& view() const noexcept { return view_; }

  /// The next view to publish.
  pending_view make_view(step_view newest) {
    return {view_, std::move(newest), ++views_};
  }

private:
  std::vector<active_run> active_;
  letter_list waiting_;
  letter_list until_end_;
  waiting_history kept_for_waiting_;
  std::shared_ptr<session_view> view_ = std::make_shared<session_view>();
  std::uint64_t views_ = 0;
};

/// Refuses the start of a run in `waiting`, if it is there. Calls `found` with
/// it before.
template <class Found>
void refuse_start(letter_list& waiting,
                  caf::actor_id run,
                  const error& why,
                  const Found& found) {
  letter_list still;
  while (!waiting.empty()) {
    auto next = waiting.pop_front();
    if (const auto* const start = as<start_run>(*next);
        start != nullptr && start->id == run) {
      found(*start);
      next->fail(why);
    } else {
      still.push_back(std::move(next));
    }
  }
  waiting = std::move(still);
}

} // namespace troupe::actors
