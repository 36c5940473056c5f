// The one way to the store: a queue whose order is that of every owner's
// memory, a thread that writes all that is queued in one go, and a few that
// read.
//
// What an owner decides enters the queue before anybody hears of it. Whoever is
// answered here is answered when what it is based on is durable.

#pragma once

#include "troupe/actors/append_wait.hpp"
#include "troupe/actors/messages.hpp"

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

struct setup;

/// Thread-safe but for construction and `stop`.
class store_queue {
public:
  /// `shared` outlives the queue.
  store_queue(std::shared_ptr<store> kept, setup& shared);
  ~store_queue();
  store_queue(const store_queue&) = delete;
  store_queue& operator=(const store_queue&) = delete;

  /// Puts a letter behind all others. A commit that is not filled holds up
  /// what comes behind it.
  void push(letter_ptr sent);
  void push(letter_list sent);

  /// Lets a commit go on that was pushed before; its owner must not touch it
  /// any more.
  void fill(commit& decided);

  /// Runs `job` on a thread that reads, at once: it sees what was acknowledged
  /// before.
  void read(std::function<void(store&)> job);

  /// Reads events of a session at once, as `store::load_events` does. `done` is
  /// called on a thread that reads.
  void load_events(const session_key& key,
                   std::uint64_t first,
                   std::uint64_t last,
                   completion<std::vector<event_ptr>> done);

  /// Writes what is queued, closes the store and ends the threads. Nothing is
  /// pushed any more but `leave`.
  result<void> stop();

private:
  static constexpr std::size_t readers_max = 4;
  // Changes of one commit: as many as callers can be waiting, but bounded, so
  // that the first ones do not wait for long.
  static constexpr std::size_t changes_max = 8'192;

  /// What is handled together, taken apart by what has to be done.
  struct group {
    std::vector<std::unique_ptr<commit>> commits;
    std::vector<std::unique_ptr<confirm>> confirms;
    std::vector<std::unique_ptr<load>> loads;
    std::vector<std::unique_ptr<read_events>> reads;
    std::vector<std::unique_ptr<find_events>> finds;
    std::vector<std::unique_ptr<leave>> leaves;
  };

  // What comes has come; with the lock held.
  void wake_writer();
  void wake_reader();
  void end_threads();
  void run_writer();
  void run_reader();
  // One round of each on a loop.
  void write_on_loop();
  void read_on_loop();
  // False at the end.
  bool take(group& next);
  void handle(group& next);
  bool write(std::vector<std::unique_ptr<commit>>& commits);
  result<void> look_elsewhere(group& next);
  bool leave_lost_history();
  void refuse_unwritten(group& next, const error& why);
  static bool shows_others(const group& next);
  void refuse_again(group& next, bool is_seen);
  void count_done(const group& settled);
  void note_settled();
  void answer(std::unique_ptr<confirm> held);
  void start(std::unique_ptr<load> wanted);
  void start(std::unique_ptr<read_events> wanted);
  void search(caf::strong_actor_ptr asks, std::unique_ptr<read_events> wanted);
  bool is_stopping();
  void start(std::unique_ptr<find_events> wanted);
  void make_stale(const std::shared_ptr<live_owner>& owner);
  bool is_stale(const live_owners& owners) const noexcept;

  const std::shared_ptr<store> store_;
  setup& shared_;

  std::mutex mutex_;
  std::condition_variable came_;
  letter_list queue_;
  bool stopping_ = false;
  std::deque<std::function<void(store&)>> jobs_;
  std::condition_variable job_came_;
  bool readers_stopping_ = false;

  // On a loop, in place of the threads: whether the writer is at work, and how
  // many readers are.
  bool writing_ = false;
  std::size_t reading_ = 0;

  // Of the writer's thread alone.
  std::unordered_map<owner_name, std::shared_ptr<live_owner>> live_;
  letter_list answered_;
  // The appends of its group, and all that were under way when it was written.
  append_load done_;
  append_load under_way_;

  std::thread writer_;
  std::vector<std::thread> readers_;
};

/// A call that a reading thread answers.
template <class T>
struct answered : call_for<T> {
  answered() : call_for<T>(letter_kind::read_state) {}
};

/// Answers `wanted` with what `job` reads; its completion runs on the threads
/// of the actor system.
void read_then_complete(setup& shared,
                        std::unique_ptr<answered<session_page>> wanted,
                        std::function<result<session_page>(store&)> job);

} // namespace troupe::actors
