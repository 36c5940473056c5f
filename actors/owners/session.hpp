// One session: the only writer of its state and its event log. All appends to
// the session pass here in one order.
//
// Session keys live here; `user:` and `app:` keys climb to their owners,
// `temp:` keys never arrive. See docs/architecture.md, "The climb". This class
// decides. A decision takes effect at once in a `memory_session`, and passes
// the store's queue in a `durable_session`. A session that does not exist has
// an actor while a letter to it is under way.

#pragma once

#include "troupe/actors/owners/owner.hpp"
#include "troupe/actors/sessions/append_batch.hpp"
#include "troupe/actors/sessions/followers.hpp"
#include "troupe/actors/sessions/id_search.hpp"
#include "troupe/actors/sessions/idle_session.hpp"
#include "troupe/actors/sessions/run_desk.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

class session_actor : public owner_actor {
public:
  /// Enters the directory. Called by the user for a session that was idle, and
  /// by the session itself otherwise.
  void appear();

  /// Thread-safe.
  bool has_key(const session_key& key) const noexcept;
  session_key key() const;

  /// Counts an append that is about to be sent. False, and not counted, at a
  /// limit. Thread-safe.
  bool enter(std::size_t bytes) noexcept;
  void leave(std::size_t bytes) noexcept;

  /// Sends a look-up to the app, where all look-ups start.
  void ask_app(letter_ptr wanted);

  user_actor& parent() const noexcept;

  /// The session with the given keys of its user and app, without a store. Call
  /// while the actor is paused, or on its thread.
  session read(const get_options& options,
               const state_map& user,
               const state_map& app) const;

  /// Time of the last use, on the clock of the directory. Thread-safe.
  std::uint64_t last_used() const noexcept {
    return last_used_.load(std::memory_order_relaxed);
  }

  /// Sets the time of the last use to now. Thread-safe.
  void note_use() noexcept;

  /// Returns true if only the directory, the user and the runtime itself hold
  /// references to the session, and its inbox is empty. Call on the session's
  /// thread and under the directory's lock, so that no reference is handed out
  /// meanwhile.
  bool is_unknown_elsewhere() const noexcept;

  caf::behavior make_behavior() override;

protected:
  /// `name` is used over a store only.
  session_actor(caf::actor_config& config,
                std::shared_ptr<setup> shared,
                user_actor& user,
                std::shared_ptr<const user_names> names,
                std::string id,
                owner_name name);

  void handle(letter_ptr received) override;
  void finish_letters() override;
  void release() override;
  error closed_reason() const override;
  void turn_away(letter_ptr sent) override;
  void leave_behind(letter_ptr sent) override;
  void renew(letter& parked) const override;

  // -- effects of decisions, at once or through the store's queue -------------

  /// Ends the batch: the accepted events take effect, and all letters are
  /// answered.
  virtual void commit() = 0;

  /// Called before the climb of the batch leaves.
  virtual void reserve_place(climb&) {}

  /// Takes back and refuses the batch: an owner above could not be loaded.
  virtual void undo_batch(const error& why);

  /// Returns true if the session continues with the letters after the removal.
  virtual bool start_remove(std::unique_ptr<remove> removal) = 0;

  /// Publishes the view of the active runs, unless a commit does so later.
  virtual void publish() {}

  /// Returns the session at revision `options.at`. Over a store, returns it as
  /// it is, with its newest event: the caller reads the rest from the store.
  virtual session read_earlier(const get_options& options);

  /// Lets a new fork begin with the past of its parent.
  virtual void take_past(forked_past& past) = 0;

  /// Trims the session, without a store.
  virtual void trim(const wanted_trim&) {}

  /// Gives a fork the past that a store would have.
  virtual void share_past(const get_options&, forked_past&) {}

  /// Publishes the newest versions with the answer of `wanted`, or before it.
  virtual void renew_view(get& wanted) = 0;

  /// Refuses a run on a session that does not exist.
  virtual void refuse_unknown_start(std::unique_ptr<start_run> wanted);

  virtual bool is_idle() const noexcept;

  bool needs_state() const noexcept override { return !is_idle(); }

  /// Returns true if a run is active, or is about to start.
  virtual bool has_run() const noexcept;

  /// Returns true if the next actor of the session handles the letter.
  virtual bool is_for_successor(const letter& sent) const noexcept;

  // -- events that are not in memory: over a store only -----------------------

  /// Looks up the id of an append that may repeat a stored event.
  virtual void ask_for_ids(const append&) {}

  /// Takes the letter and returns true if it has to wait for events.
  virtual bool waits_for_events(std::unique_ptr<get>&) { return false; }

  /// The same for the history that a run reads. If it is in memory, finds where
  /// the run starts to read.
  virtual bool waits_for_events(std::unique_ptr<start_run>& wanted);

  /// Refuses a run that waits for its start.
  virtual void refuse_waiting_start(caf::actor_id run);

  /// Refuses all runs that wait for their start.
  virtual void refuse_waiting_starts(const error& why);

  // -- readers that follow the session ----------------------------------------

  /// Number of the newest event that was acknowledged.
  virtual std::uint64_t acknowledged() const noexcept { return revision(); }

  /// Number of the newest event for a reader that starts at the end.
  virtual std::uint64_t end_for(follow&) { return acknowledged(); }

  /// Number of the session among those of the same key; 0 if it is not known.
  virtual std::uint64_t incarnation() = 0;

  /// Takes the letter and returns true if it has to wait for the store: for the
  /// session's incarnation, or for events that are not in memory.
  virtual bool waits_for_store(std::unique_ptr<follow>&) { return false; }

  /// Answers the readers that wait for acknowledged events.
  void answer_followers();

  /// Answers a letter, once it is confirmed if the answer may be stale.
  void answer_follow(std::unique_ptr<follow> answered,
                     result<followed> outcome);
  void end_follow(std::unique_ptr<follow> ended, misplacement why);

  // -- parts of both kinds ----------------------------------------------------

  // Number of the newest event.
  std::uint64_t revision() const noexcept { return events_.revision(); }

  // Number of the newest events that a `get` shows.
  std::uint64_t shown_by(const get_options& options) const;

  // Returns true if look-ups wait for the session's creation.
  bool awaits_creation() const noexcept { return creations_ > 0 && !created_; }

  // Handles look-ups that waited for a creation.
  void handle_early();

  // Makes the accepted events of the batch the newest ones of the session.
  void install_batch();
  void reply(std::unique_ptr<append> answered);

  // Position of the event with a given id, as far as memory knows.
  struct id_place {
    std::uint64_t number = 0; // In `events_` or `batch_`; 0: in neither.
    bool may_be_stored = false;
  };

  id_place find_id(const append& sent);

  // Reads the ids of the past that a fork shares.
  void read_past_ids();

  // Number of newest events whose ids are kept.
  std::size_t ids_kept() const noexcept {
    return shared().options.remembered_ids;
  }

  pending_view make_view();
  void look_in_memory(history_search& search) const;
  std::uint64_t first_read(const start_run& wanted) const;

  // Takes the newest versions of the owners above. They send their versions in
  // order, so a later version is newer.
  void see(scope_version user, scope_version app);

  // The records of this session and of the wider owners in question.
  live_owners owners(bool user, bool app) const;

  // Ends the actor, because the session is removed.
  void end(remove& removal);
  void cancel_runs(const error& why);
  // The error of a run that another process has recovered.
  error taken_over(const run_desk::active_run& run) const;
  // The error for a letter to a session that does not exist or has ended.
  error refusal_of(const letter& sent) const;
  void fail_all(letter_list letters) const;
  // Tells the user that the session has left, and leaves its state there.
  void tell_gone(std::unique_ptr<idle_session> idle);

  // Session and user hold each other; the user releases the session when
  // it ends.
  const ref<user_actor> kept_user_;
  const std::shared_ptr<const user_names> names_;
  const std::string id_;

  scope_state state_;
  event_window events_;
  // Oldest revision that is kept. The events up to it are gone.
  std::uint64_t trimmed_to_ = 0;
  recent_ids ids_;
  // Number of the newest event of a past whose ids are not in `ids_`; 0: none.
  // They are read when an append needs them, since a fork costs nothing else.
  std::uint64_t unread_ids_ = 0;
  // Null until an id was looked up in a store.
  std::unique_ptr<id_search> older_ids_;
  timestamp last_update_time_{};
  // The newest versions of user and app that this session has seen.
  scope_version seen_user_;
  scope_version seen_app_;

  letter_list queue_;  // Appends, creations and removals, in order.
  append_batch batch_; // Under way.
  bool climbing_ = false;
  // Look-ups wait until the creation is committed.
  bool created_ = false;
  // Later letters wait until the store has removed the session, or has told if
  // the first append repeats an older event.
  bool removing_ = false;
  bool comparing_ = false;
  std::uint32_t creations_ = 0;
  letter_list early_;

  std::unique_ptr<run_desk> runs_; // Null for most sessions.
  // Null for sessions that were never followed.
  std::unique_ptr<followers> followers_;

  // Set when the session leaves memory, becomes idle or is removed: the actor
  // that takes later letters, and letters that came before the end.
  ref<owner_actor> successor_;
  letter_list left_;

private:
  // -- messages ---------------------------------------------------------------

  result<session> answer_to(const get_options& options);
  void receive(std::unique_ptr<append> sent);
  void receive(std::unique_ptr<create> wanted);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<climb> answered);
  void receive(std::unique_ptr<forward> passed);
  void receive(std::unique_ptr<retire> wished);
  void receive(std::unique_ptr<get> wanted);
  void receive(std::unique_ptr<follow> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<start_run> wanted);
  void receive(std::unique_ptr<end_run> ended);
  void receive(std::unique_ptr<shut_down> told);

  // -- appending --------------------------------------------------------------

  void start_batch();
  bool accept(append& next, bool undecided);
  result<void> check_existence(const append& next) const;
  result<void> check_past(const append& next) const;
  result<void>
  check_revision(const std::optional<std::uint64_t>& expected) const;
  result<void> check_rewind(const append& next) const;
  result<void> check_run_of(const append& next) const;
  result<void> check_removal(const remove_options& options) const;
  // Refuses a removal if the session is not as it expects. Takes the letter and
  // returns true then.
  bool refuse_changed(std::unique_ptr<remove>& removal);
  // Returns true if the letter is a retry and needs no decision of its own.
  // Sets `comparing_` if only the store knows.
  bool join_earlier(std::unique_ptr<append>& retry);
  void note_id(const append& accepted, std::uint64_t number, std::size_t kept);
  event_ptr finish_event(append& judged);
  void finish_create(create& judged);

  // -- readers that follow the session ----------------------------------------

  void keep(std::unique_ptr<follow> waiting);
  void hand_out(std::unique_ptr<follow> wanted);

  // -- runs -------------------------------------------------------------------

  void grant(std::unique_ptr<start_run> next);
  // Ends the runs if the letter asks for that. Takes the letter and returns
  // true if a run is still active.
  bool waits_for_runs(std::unique_ptr<get>& wanted);
  result<void> claim(append& next);
  // Refuses the recovery of a run that is active here.
  result<void> check_not_active(const start_run& wanted) const;
  // Judges the claim of a recovery.
  result<void> claim_run(append& next);
  result<void> find_answered(append& message);

  void ask_to_retire();
  state_snapshot snapshot() const;

  bool asked_to_retire_ = false;

  load_count held_; // Appends under way, counted by their senders.
  std::atomic<std::uint64_t> last_used_{0};
};

} // namespace troupe::actors
