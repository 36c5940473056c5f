// One session: its state and its event log, held by their only writer, the
// sequencer of everything appended to it.
//
// Session keys live here; `user:` and `app:` keys climb to their owners,
// `temp:` keys never arrive. See docs/architecture.md, "The climb". Over a
// store, what is decided goes to the store's queue and its callers are answered
// when it comes back; a session that does not exist has an actor as long as
// somebody asks for it.

#pragma once

#include "troupe/actors/list_index.hpp"
#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/recent_ids.hpp"
#include "troupe/actors/waiting_history.hpp"
#include "troupe/core/event_log.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

/// The names above a session, shared by all sessions of a user.
struct user_names {
  std::string app;
  std::string user;
  /// Where its sessions are listed; null over a store, which lists them itself.
  std::shared_ptr<list_index> listed = nullptr;
};

class session_actor final : public owner_actor {
public:
  session_actor(caf::actor_config& config,
                std::shared_ptr<setup> shared,
                user_actor& user,
                std::shared_ptr<const user_names> names,
                std::string id);

  /// Thread-safe.
  bool has_key(const session_key& key) const noexcept;
  session_key key() const;

  /// Counts an append that is about to be told, or refuses it. Thread-safe.
  bool enter(std::size_t bytes) noexcept;
  void leave(std::size_t bytes) noexcept;

  /// Sends a look-up to the app, where all of them start.
  void ask_app(letter_ptr wanted);

  /// When it was last used, on the clock of the directory. Thread-safe.
  std::uint64_t last_used() const noexcept {
    return last_used_.load(std::memory_order_relaxed);
  }

  caf::behavior make_behavior() override;

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void settle() override;
  void release() override;
  error closed_reason() const override;
  // Why a session that does not exist or has ended does not take the letter.
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
  // -- what it hears
  // -----------------------------------------------------------

  void receive(std::unique_ptr<climb> answered);
  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<read_events> answered);
  void receive(std::unique_ptr<find_events> answered);
  void receive(std::unique_ptr<fresh> looked);
  void receive(std::unique_ptr<forward> passed);
  void receive(const retire& wished);
  void receive(std::unique_ptr<get> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<start_run> wanted);
  void receive(std::unique_ptr<end_run> ended);

  // -- appending
  // ---------------------------------------------------------------

  // The number of the newest event.
  std::uint64_t revision() const noexcept { return first_ + log_.size(); }

  void start_batch();
  bool cut_off(std::unique_ptr<append>& next);
  // Which must not be: for tests that have to notice.
  void answer_early(climb& up);
  bool accept(append& next, bool undecided);
  bool accept_past(create& first);
  void drop_creation(error why);
  result<void> check_existence(const append& next) const;
  result<void> check_revision(const append& next) const;

  // -- event ids
  // ---------------------------------------------------------------

  // Whether the letter is done with, as far as the session is concerned. Sets
  // `comparing` if only the store can tell.
  bool join_earlier(std::unique_ptr<append>& retry);
  void join(std::unique_ptr<append> retry, const event_ptr& original);

  // Where the event of this id is, as far as memory knows.
  struct id_place {
    std::uint64_t number = 0; // In `log_` or `accepted_`; 0: in neither.
    bool may_be_stored = false;
  };

  id_place find_id(const append& sent);
  // How many ids of the newest events are kept.
  std::size_t ids_kept() const noexcept;
  void note_id(const append& accepted, std::uint64_t number, std::size_t kept);
  void install_ids(const std::vector<std::uint32_t>& newest);
  void ask_for_ids(const append& first);
  void commit();
  store_change change_of(const append& decided, std::uint64_t number) const;
  event_ptr finish_event(append& judged);
  void reply(std::unique_ptr<append> answered);
  void finish_create(create& judged);
  // In the directory.
  void appear();

  // -- over a store
  // ------------------------------------------------------------

  void reply_to_removal(std::unique_ptr<remove> removal,
                        const struct commit& answered);
  void reply_to_start(std::unique_ptr<start_run> refused,
                      const struct commit& answered);
  void decide_again(std::unique_ptr<append> decided);
  void take_up_again();
  void reply_behind_fresh_view(letter_list answered);
  void reply_in_order(std::unique_ptr<append> answered);
  void hold_back(letter_list& held, letter_ptr answered);
  void let_through();
  void let_all_through();
  void send_to_store(std::vector<store_change> changes);
  void refuse_behind_others(std::unique_ptr<start_run> wanted);
  live_owners owners(bool user, bool app) const;
  // Whether the events from number `first` on are in memory; fetches them if
  // not.
  bool reach(std::uint64_t first);
  void resume_waiting(letter_list waiting);
  void forget_old_events();
  void fetch(std::unique_ptr<read_events> wanted);
  bool is_idle() const noexcept;

  // -- runs
  // --------------------------------------------------------------------

  void grant(std::unique_ptr<start_run> next);
  void wait_for_turn(std::unique_ptr<start_run> next);
  result<void> claim(append& next);
  fresh_view look();
  void publish();

  // -- what runs read of the history
  // ------------------------------------------

  // Whether it is in memory; fetches it if not.
  bool has_history_for(start_run& wanted);
  bool find_history_of(start_run& wanted);
  void look_in_memory(history_search& search) const;
  void receive_search(std::unique_ptr<read_events> answered);
  result<void> find_answered(append& message);
  std::uint64_t first_read(const start_run& wanted) const;
  // The oldest event that a run needs which is under way or waits for its turn.
  std::uint64_t oldest_read() const;
  std::uint64_t newest_to_load() const;
  void keep_for_active();
  bool has_waiting_starts() const noexcept;
  void search_again();
  void refuse_waiting_start(caf::actor_id invocation);

  bool start_remove();
  void finish_remove(std::unique_ptr<remove> removal);
  void cancel_runs();
  void send_on(letter_ptr sent);
  void leave_all_behind();
  bool is_for_successor(const letter& sent) const noexcept;

  // The owners above send their roots in order, so what comes later is newer.
  void see(root user, root app);
  user_actor& parent() const noexcept;
  state_snapshot snapshot() const;

  // Who sits at this session's runs; most sessions have none.
  struct run_desk {
    struct active_run {
      caf::strong_actor_ptr invocation;
      std::uint64_t first_read; // Older events are not kept for it.
      // Its message may get a lower number when it is decided again.
      std::uint64_t newest_max;
    };

    std::vector<active_run> active;
    letter_list waiting;
    waiting_history kept_for_waiting;
    std::shared_ptr<session_view> view = std::make_shared<session_view>();
    std::uint64_t views = 0;
  };

  // Ids of a session over a store that are not in `ids_`.
  struct id_search {
    // The answer of the store for ids that were asked for; null: no event.
    std::unordered_map<std::string, event_ptr> found;
    // The newest event that the answer covers.
    std::uint64_t covered = 0;
    // Of all ids; null until there have been several questions.
    std::unique_ptr<id_filter> filter;
    std::uint64_t filtered = 0; // The newest event in it.
    bool making_filter = false;
    std::vector<std::uint32_t> since; // Hashes accepted meanwhile.
    std::uint64_t questions = 0;      // Since the last load or filter.
    std::uint64_t loads = 0;
  };

  // What a session over a store has besides.
  struct store_side {
    // Decided and not answered yet.
    std::size_t commits = 0;
    // Of those, in their order: what has to be decided again.
    letter_list again;

    // Of those that are durable, in their order: what waits for a fresh view,
    // and what stands behind that.
    struct waiting_view {
      letter_list letters;
      std::uint64_t look = 0; // 0: it waits for those before it alone.
      std::optional<result<session>> seen;
    };

    std::deque<waiting_view> held_back;
    std::uint64_t looks = 0;
    // The place of the batch under way, where its climb was decided.
    struct commit* reserved = nullptr;
    // What waits for events that are not in memory.
    letter_list waiting;
    bool fetching = false;
    // How often a load had fewer events than were there before: what was found
    // in them is looked for again.
    std::uint64_t cuts = 0;
    bool removing = false;
    // An append may repeat an event that is not in memory: the store is asked.
    bool comparing = false;
    id_search ids;
    bool asked_to_retire = false;
    // Once retired: where letters that come too late are sent, and those that
    // came before the end.
    caf::strong_actor_ptr successor;
    letter_list left;
    // When it has been removed: told at the end, with what is left.
    std::unique_ptr<remove> removal;
    bool is_removed = false;
    // The same when it ends because its user is being removed.
    bool goes_with_user = false;
  };

  // Both let go of each other at the end of the user.
  const caf::strong_actor_ptr kept_user_;
  const std::shared_ptr<const user_names> names_;
  const std::string id_;

  scope_state state_;
  // The newest events; those before are in the store alone.
  std::uint64_t first_ = 0;
  event_log log_;
  recent_ids ids_;
  timestamp last_update_time_{};
  std::unique_ptr<listing> listing_; // Null over a store.
  // The newest that this session has seen of the wider owners.
  root seen_user_;
  root seen_app_;

  letter_list queue_; // Appends, creations and removals in their order.
  // The batch under way: all its letters, and those of them that were accepted.
  std::vector<std::unique_ptr<append>> batch_;
  std::vector<append*> accepted_;
  bool climbing_ = false;
  // Until the creation is committed, look-ups wait.
  bool created_ = false;
  std::uint32_t creations_ = 0;
  letter_list early_;

  std::unique_ptr<run_desk> desk_;
  const std::unique_ptr<store_side> stored_;

  load_count held_; // Appends under way, counted by whoever tells them.
  std::atomic<std::uint64_t> last_used_{0};
};

session_actor& as_session(const caf::strong_actor_ptr& actor) noexcept;

} // namespace troupe::actors
