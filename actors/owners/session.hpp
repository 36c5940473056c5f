// One session: the only writer of its state and its event log. All appends to
// the session pass here in one order.
//
// Session keys live here; `user:` and `app:` keys climb to their owners,
// `temp:` keys never arrive. See docs/architecture.md, "The climb". Over a
// store, decided events go to the store's queue, and callers are answered when
// the commit comes back. A session that does not exist has an actor while a
// letter to it is under way.

#pragma once

#include "troupe/actors/owners/owner.hpp"
#include "troupe/actors/sessions/append_batch.hpp"
#include "troupe/actors/sessions/idle_session.hpp"
#include "troupe/actors/sessions/run_desk.hpp"
#include "troupe/actors/sessions/store_side.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

class session_actor final : public owner_actor {
public:
  /// `idle` is the state of the session; null if it does not exist, or is
  /// loaded from a store.
  session_actor(caf::actor_config& config,
                std::shared_ptr<setup> shared,
                user_actor& user,
                std::shared_ptr<const user_names> names,
                std::string id,
                std::unique_ptr<idle_session> idle);

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
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void finish_letters() override;
  void release() override;
  error closed_reason() const override;
  // The error for a letter to a session that does not exist or has ended.
  error refusal_of(const letter& sent) const;
  void turn_away(letter_ptr sent) override;
  void leave_behind(letter_ptr sent) override;
  void part() override;

  bool can_load() const noexcept override;
  load_options what_to_load() const override;
  std::uint64_t oldest_to_load() const override;
  void install(load& loaded) override;
  void note_parked(letter& parked) override;
  void renew(letter& parked) const override;
  void refuse_waiting(const error& why) override;
  void refuse(letter_ptr received, const error& why) override;

private:
  // -- messages ---------------------------------------------------------------

  void receive(std::unique_ptr<append> sent);
  void receive(std::unique_ptr<create> wanted);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<climb> answered);
  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<read_events> answered);
  void receive(std::unique_ptr<find_events> answered);
  void receive(std::unique_ptr<view_refresh> refreshed);
  void receive(std::unique_ptr<forward> passed);
  void receive(std::unique_ptr<retire> wished);
  void receive(std::unique_ptr<get> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<start_run> wanted);
  void receive(std::unique_ptr<end_run> ended);
  void receive(std::unique_ptr<shut_down> told);

  // Returns true if look-ups wait for the session's creation.
  bool awaits_creation() const noexcept { return creations_ > 0 && !created_; }

  // -- appending --------------------------------------------------------------

  // Number of the newest event.
  std::uint64_t revision() const noexcept { return events_.revision(); }

  // Number of the newest events that a `get` shows.
  std::uint64_t shown_by(const get_options& options) const;

  void start_batch();
  bool accept(append& next, bool undecided);
  result<void> check_existence(const append& next) const;
  result<void> check_revision(const append& next) const;

  // -- event ids --------------------------------------------------------------

  // Returns true if the letter is a retry and needs no decision of its own.
  // Sets `comparing` if only the store knows.
  bool join_earlier(std::unique_ptr<append>& retry);

  // Position of the event with a given id, as far as memory knows.
  struct id_place {
    std::uint64_t number = 0; // In `events_` or `batch_`; 0: in neither.
    bool may_be_stored = false;
  };

  id_place find_id(const append& sent);
  // Number of newest events whose ids are kept.
  std::size_t ids_kept() const noexcept;
  void note_id(const append& accepted, std::uint64_t number, std::size_t kept);
  void install_ids(const std::vector<std::uint32_t>& newest);
  void ask_for_ids(const append& first);
  void forget_found();
  void commit();
  store_change change_of(const append& decided, std::uint64_t number) const;
  event_ptr finish_event(append& judged);
  void reply(std::unique_ptr<append> answered);
  void finish_create(create& judged);

  // -- over a store -----------------------------------------------------------

  // State over a store. Without a store nothing waits there.
  const store_side& at_store() const noexcept {
    return stored_ ? *stored_ : no_store_side;
  }

  // Answer a letter of a commit, or decide it again.
  void reply_to(std::unique_ptr<append> decided, const struct commit& answered);
  void reply_to(std::unique_ptr<remove> removal, const struct commit& answered);
  void reply_to(std::unique_ptr<start_run> refused,
                const struct commit& answered);
  void decide_again(std::unique_ptr<append> decided);
  void handle_early();
  void requeue();
  void reply_after_refresh(letter_list answered);
  void reply_in_order(std::unique_ptr<append> answered);
  letter_ptr hold_back(letter_ptr answered);
  void reply_held();
  void reply_held(std::unique_ptr<append> answered,
                  const std::optional<result<session>>& seen);
  void reply_all_held();
  void answer_at_once();
  void send_to_store();
  std::vector<store_change> changes() const;
  void refuse_behind_others(std::unique_ptr<start_run> wanted);
  live_owners owners(bool user, bool app) const;
  // Returns true if all events from number `first` on are in memory. If not,
  // fetches the missing ones.
  bool reach(std::uint64_t first);
  void resume_waiting(letter_list waiting);
  void forget_old_events();
  void fetch(std::unique_ptr<read_events> wanted);
  bool is_changing() const noexcept;
  bool continues(std::uint64_t before, const event_ptr& newest) const;
  bool is_idle() const noexcept;
  void ask_to_retire();
  std::unique_ptr<idle_session> become_idle();

  // -- runs -------------------------------------------------------------------

  void grant(std::unique_ptr<start_run> next);
  result<void> claim(append& next);
  pending_view make_view();
  void publish();

  // -- history that runs read -------------------------------------------------

  // Returns true if the history that the run reads is in memory. If not,
  // fetches it.
  bool has_history_for(start_run& wanted);
  bool find_history_of(start_run& wanted);
  void look_in_memory(history_search& search) const;
  void receive_search(std::unique_ptr<read_events> answered);
  result<void> find_answered(append& message);
  std::uint64_t first_read(const start_run& wanted) const;
  bool has_waiting_starts() const noexcept;
  void search_again();
  void refuse_waiting_start(caf::actor_id run);

  void refuse(std::unique_ptr<remove> removal, const error& why);
  bool start_remove();
  void finish_remove(std::unique_ptr<remove> removal);
  void cancel_runs();
  void send_on(letter_ptr sent);
  void leave_all_behind();
  bool is_for_successor(const letter& sent) const noexcept;

  // Takes the newest versions of the owners above. They send their versions in
  // order, so a later version is newer.
  void see(scope_version user, scope_version app);
  state_snapshot snapshot() const;

  // Session and user hold each other; the user releases the session when
  // it ends.
  const ref<user_actor> kept_user_;
  const std::shared_ptr<const user_names> names_;
  const std::string id_;

  scope_state state_;
  event_window events_;
  recent_ids ids_;
  timestamp last_update_time_{};
  std::unique_ptr<listing> listing_; // Null over a store, or if not created.
  // The newest versions of user and app that this session has seen.
  scope_version seen_user_;
  scope_version seen_app_;

  letter_list queue_;  // Appends, creations and removals, in order.
  append_batch batch_; // Under way.
  bool climbing_ = false;
  // Look-ups wait until the creation is committed.
  bool created_ = false;
  std::uint32_t creations_ = 0;
  letter_list early_;

  std::unique_ptr<run_desk> runs_;           // Null for most sessions.
  const std::unique_ptr<store_side> stored_; // Null without a store.

  // Set when the session leaves memory, becomes idle or is removed: the actor
  // that takes later letters, and letters that came before the end.
  ref<owner_actor> successor_;
  letter_list left_;
  bool asked_to_retire_ = false;

  load_count held_; // Appends under way, counted by their senders.
  std::atomic<std::uint64_t> last_used_{0};
};

} // namespace troupe::actors
