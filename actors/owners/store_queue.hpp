// The queue to the store: one thread at a time commits all queued changes
// together, and a few threads read. The writer is a thread of the queue, or
// that of a blocked caller that finds it asleep.
//
// Invariant: letters of an owner are queued in the order in which it decided
// them, before any other owner sees the decision. So each commit that a later
// one builds on is durable or stands before it in the queue. An answer leaves
// the queue only when the commits that it is based on are durable.
//
// A store may be several databases (`store_parts`). A group is then written to
// one after the other, and each outcome concerns the apps of its database.

#pragma once

#include "troupe/actors/engine/lent_thread.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/parts/append_wait.hpp"
#include "troupe/actors/parts/store_parts.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::actors {

struct setup;

/// Thread-safe except for construction and `stop`.
class store_queue final : private spare_work {
public:
  /// `shared` outlives the queue.
  store_queue(std::shared_ptr<store> kept, setup& shared);
  ~store_queue();
  store_queue(const store_queue&) = delete;
  store_queue& operator=(const store_queue&) = delete;

  /// Adds letters at the end. A commit that is not filled blocks the queue:
  /// later letters may build on it.
  void push(letter_ptr sent);
  void push(letter_list sent);

  /// Releases a commit that was pushed before it was complete. Its owner must
  /// not touch it afterwards.
  void fill(commit& decided);

  /// Runs `job` on a reader thread, without waiting for the queue. It sees all
  /// commits that were acknowledged before.
  void read(std::function<void(store&)> job);

  /// Reads events `first` to `last` of a session on a reader thread, as
  /// `store::load_events` does. `done` is called on that thread.
  void load_events(const session_key& key,
                   std::uint64_t first,
                   std::uint64_t last,
                   completion<std::vector<event_ptr>> done);

  /// Returns true once another process has written to the store.
  bool has_rivals() const noexcept { return has_rivals_; }

  /// Makes a session load again that the store no longer has whole: a read of
  /// it, by a job of `read`, was answered with `errc::gone`.
  void note_gone(const session_key& key);

  /// Counts a reader that waits for changes. While there is one, the queue asks
  /// the store for those of other processes (`follow_period`).
  void add_watcher();

  void remove_watcher() noexcept { watchers_.fetch_sub(1); }

  /// Counts a run that this process has opened in the store. While there is
  /// one, the queue renews the holder (`setup::holder_id`) three times in each
  /// `run_lease`.
  void add_run();

  /// Closes a run that was counted, with the next group of commits. Does not
  /// wait for it, and tries again after a failure.
  void close_run(const session_key& key, const std::string& invocation_id);

  /// Closes the open run of a holder that has ended, which cannot go on.
  void close_run_of(const session_key& key,
                    const std::string& invocation_id,
                    const std::string& holder);

  /// Leaves a run that was counted open, without a process that executes it:
  /// `holder` is a `left_holder` or `refused_holder`. No effect if another
  /// process has it by now, or if this one recovers it before. Written as by
  /// `close_run`.
  void leave_run(const session_key& key,
                 const std::string& invocation_id,
                 const std::string& agent,
                 std::string holder);

  /// As `leave_run`, for a run that was not counted and that the store shows as
  /// open after a loss. No effect if this process executes the run by then.
  void leave_restored_run(const session_key& key,
                          const std::string& invocation_id,
                          const std::string& agent,
                          std::string holder);

  /// Makes the store forget a holder that has died, before the next commits. A
  /// failure has no effect: the caller finds the holder again.
  void forget_holder(const std::string& holder);

  /// Returns true if the run has ended here, and the store does not know yet.
  bool is_closing(const session_key& key, const std::string& invocation_id);

  /// Number of times that the store has lost commits. It grows before the
  /// owners become stale, so a decision on older data is made again.
  std::uint64_t losses() const noexcept { return losses_; }

  /// Writes the queued changes, closes the store and ends the threads. Only
  /// `leave` letters may be pushed from now on. Fails with the error of closing
  /// the store.
  result<void> stop();

private:
  static constexpr std::size_t readers_max = 4;
  // Limit of changes in one commit. Large enough for all callers that can be
  // waiting, small enough that the first of them do not wait long.
  static constexpr std::size_t changes_max = 8'192;
  // Limit of runs to close, while the store fails. The oldest ones then stay
  // open.
  static constexpr std::size_t closed_runs_max = 65'536;

  /// Letters that are handled together, sorted by kind.
  struct group {
    void add(std::unique_ptr<commit> next) {
      commits.push_back(std::move(next));
    }

    void add(std::unique_ptr<confirm> next) {
      confirms.push_back(std::move(next));
    }

    void add(std::unique_ptr<load> next) { loads.push_back(std::move(next)); }

    void add(std::unique_ptr<read_events> next) {
      reads.push_back(std::move(next));
    }

    void add(std::unique_ptr<find_events> next) {
      finds.push_back(std::move(next));
    }

    void add(std::unique_ptr<leave> next) { leaves.push_back(std::move(next)); }

    void add(std::unique_ptr<trim> next) { trims.push_back(std::move(next)); }

    void add(std::unique_ptr<outdated> next) {
      outdated_owners.push_back(std::move(next->owner));
    }

    void add(std::unique_ptr<look>) { looks = true; }

    void add(std::unique_ptr<actors::close_run> next) {
      auto& into = next->is_restored ? restored_runs : closed_runs;
      into.push_back(std::move(next->change));
    }

    void add(std::unique_ptr<give_up_run> next) {
      given_up.push_back(std::move(next));
    }

    void add(std::unique_ptr<actors::renew>) { renews = true; }

    std::vector<std::unique_ptr<commit>> commits;
    std::vector<std::unique_ptr<confirm>> confirms;
    std::vector<std::unique_ptr<load>> loads;
    std::vector<std::unique_ptr<read_events>> reads;
    std::vector<std::unique_ptr<find_events>> finds;
    std::vector<std::unique_ptr<leave>> leaves;
    std::vector<std::unique_ptr<trim>> trims;
    std::vector<std::unique_ptr<give_up_run>> given_up;
    std::vector<owner_name> outdated_owners;
    std::vector<store_change> closed_runs;
    std::vector<store_change> restored_runs;
    std::set<std::string> dead_holders;
    bool looks = false;
    bool renews = false;
  };

  // Errors of the databases whose changes by other processes are not known, by
  // the index of the database.
  using unseen_parts = std::vector<std::optional<error>>;

  // Wakes the writer, or a reader, after the queue changed. Requires `mutex_`.
  void wake_writer();
  void wake_reader();
  void end_threads();
  void run_writer();
  void run_reader();
  bool work_here() override;
  void hand_over() noexcept override;
  // One round of the writer, or of a reader, on a loop.
  void write_on_loop();
  void read_on_loop();
  // Returns true if a group can be taken, or the queue has stopped. Requires
  // `mutex_`, as `take` does.
  bool has_work() const noexcept;
  group take();
  void schedule_look();
  void look_for_watchers();
  void schedule_renewal();
  void renew();
  void leave_restored_runs(std::size_t part);
  bool is_executed(const store_change& left);
  // Handles the next group as the writer. Releases `guard`, which holds
  // `mutex_`, meanwhile.
  void write_next(std::unique_lock<std::mutex>& guard);
  void handle(group& next);
  bool write(std::vector<std::unique_ptr<commit>>& commits);
  bool write(std::size_t part, const std::vector<commit*>& commits);
  bool fail_forks(commit& decided,
                  const std::vector<commit*>& written,
                  const std::vector<owner_name>& moved);
  static bool keep_out(commit& decided, const std::vector<kept_out_run>& found);
  void write(std::unique_ptr<trim> wanted);
  void write(std::unique_ptr<give_up_run> wanted);
  void take_closed_runs(std::vector<store_change> closed,
                        std::vector<store_change> restored);
  void keep_taken_up(std::span<const store_change> changes);
  std::size_t add_closed_runs(std::size_t part,
                              std::vector<store_change>& changes) const;
  void forget_closed_runs(std::size_t part);
  void renew_holder();
  void forget_holders(const std::set<std::string>& died);
  void
  send_close(const session_key& key, run_mark mark, bool is_restored = false);
  void forget_closing(const store_change& closed);
  std::size_t part_of(const confirm& held) const;
  std::vector<bool> parts_of(const group& next) const;
  unseen_parts check_other_processes(group& next);
  result<void> check_other_processes(std::size_t part);
  void refuse_unseen(group& next, const unseen_parts& unseen);
  bool leave_lost_history(std::size_t part);
  void refuse_unwritten(group& next, const unseen_parts& unseen);
  void fail_written(group& next, const std::vector<std::uint64_t>& losses);
  static bool shows_others(const group& next);
  void refuse_again(group& next, const unseen_parts& unseen);
  void count_done(const group& settled);
  void answer(std::unique_ptr<confirm> held);
  void start(std::unique_ptr<load> wanted);
  void start(std::unique_ptr<read_events> wanted);
  void search(ref<inbox_actor> asks, std::unique_ptr<read_events> wanted);
  bool is_stopping();
  void start(std::unique_ptr<find_events> wanted);
  void make_stale(const std::shared_ptr<live_owner>& owner,
                  bool has_moved = true);
  void load_stale(const live_owners& owners);
  bool is_stale(const live_owners& owners) const noexcept;

  const std::shared_ptr<store> store_;
  store_parts parts_;
  setup& shared_;

  std::mutex mutex_;
  std::condition_variable came_;
  letter_list queue_;
  bool stopping_ = false;
  // A timer for watchers is set; a `look` is in the queue.
  bool is_watching_ = false;
  bool is_looking_ = false;
  std::atomic<std::size_t> watchers_{0};
  // As above, for the holder of runs.
  bool is_renewing_ = false;
  bool is_renewal_queued_ = false;
  // Other processes that have died, and that the store still knows.
  std::set<std::string> dead_holders_;
  // Runs of this process that are open in the store, or are about to be closed.
  std::atomic<std::size_t> open_runs_{0};
  std::atomic<bool> was_holder_{false};
  std::atomic<bool> has_rivals_{false};
  // Databases whose restored runs are left later, after a failure.
  std::set<std::size_t> leaves_later_;   // Under `mutex_`.
  std::atomic<std::uint64_t> losses_{0}; // Changed by the writer.
  std::deque<std::function<void(store&)>> jobs_;
  std::condition_variable job_came_;
  bool readers_stopping_ = false;

  bool writing_ = false; // A thread, or a job of the loop, is the writer.
  // On a loop, in place of threads: the number of readers that work.
  std::size_t reading_ = 0;

  // The members below belong to the writer.
  std::vector<std::uint64_t> part_losses_; // `losses_` of each database.
  std::unordered_map<owner_name, std::shared_ptr<live_owner>> live_;
  letter_list answered_;
  // Runs to close that are not written yet.
  std::deque<store_change> closed_runs_;
  // Sessions and ids of the runs that end, until the store knows; under
  // `mutex_`.
  std::set<std::pair<owner_name, std::string>> closing_;
  // The last group. The appends under way are those when it was written.
  append_wait::group settled_;

  std::thread writer_;
  std::vector<std::thread> readers_;
};

/// A call that a reader thread answers.
template <class T>
struct answered : call_for<T> {
  answered() : call_for<T>(letter_kind::finished) {}
};

/// Runs `job` on a reader thread, and completes `wanted` with its result on a
/// thread of the actor system. `T` is a session, a page, a list of names, of
/// events or of open runs, or a bool.
template <class T>
void read_then_complete(setup& shared,
                        std::unique_ptr<answered<T>> wanted,
                        std::function<result<T>(store&)> job);

} // namespace troupe::actors
