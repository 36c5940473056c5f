// A session over a store. Its decisions pass the store's queue, and it keeps
// only its newest events in memory.
//
// Invariants: all decisions of the session enter the queue in the order in
// which they were made, refusals included. The queue answers in the same order.
// Letters that must be decided again go before all letters that came later
// (`requeue`), and durable answers that wait for a refreshed view hold back
// later ones (`held_back_`). So callers never see two events of one session out
// of order.

#pragma once

#include "troupe/actors/owners/session.hpp"
#include "troupe/actors/parts/savepoint.hpp"
#include "troupe/actors/sessions/held_answers.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::actors {

class durable_session final : public session_actor {
public:
  durable_session(caf::actor_config& config,
                  const std::shared_ptr<setup>& shared,
                  user_actor& user,
                  const std::shared_ptr<const user_names>& names,
                  const std::string& id);

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void finish_letters() override;
  void release() override;
  void turn_away(letter_ptr sent) override;
  void leave_behind(letter_ptr sent) override;
  void part() override;

  bool can_load() const noexcept override;
  load_options what_to_load() const override;
  std::uint64_t oldest_to_load() const override;
  bool can_go_back() const override;
  void note_claims();
  void install(load& loaded) override;
  void note_parked(letter& parked) override;
  void refuse_waiting(const error& why) override;
  void refuse(letter_ptr received, const error& why) override;

  void commit() override;
  void reserve_place(climb& up) override;
  void undo_batch(const error& why) override;
  bool start_remove(std::unique_ptr<remove> removal) override;
  void renew_view(get& wanted) override;
  void take_past(forked_past& past) override;
  void refuse_unknown_start(std::unique_ptr<start_run> wanted) override;
  bool is_idle() const noexcept override;
  bool has_run() const noexcept override;
  bool is_for_successor(const letter& sent) const noexcept override;

  std::uint64_t acknowledged() const noexcept override { return acknowledged_; }

  std::uint64_t end_for(follow& wanted) override;

  std::uint64_t incarnation() override { return incarnation_; }

  bool waits_for_store(std::unique_ptr<follow>& wanted) override;

  void ask_for_ids(const append& first) override;
  bool waits_for_events(std::unique_ptr<get>& wanted) override;
  bool waits_for_events(std::unique_ptr<start_run>& wanted) override;
  void refuse_waiting_start(caf::actor_id run) override;
  void refuse_waiting_starts(const error& why) override;

private:
  std::size_t events_kept() const noexcept;

  // -- messages ---------------------------------------------------------------

  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<read_events> answered);
  void receive(std::unique_ptr<find_events> answered);
  void receive(std::unique_ptr<view_refresh> refreshed);

  // -- writing ----------------------------------------------------------------

  store_change change_of(const append& decided, std::uint64_t number) const;
  std::vector<store_change> changes() const;
  void send_to_store(std::unique_ptr<savepoint> before);
  // A commit of this session alone, ready to be written.
  std::unique_ptr<struct commit> make_commit(letter_ptr decided) const;
  void push(std::unique_ptr<struct commit> decided);

  // Answer the letters of a commit, or decide them again.
  void reply_to_all(std::unique_ptr<struct commit> answered);
  void reply_to(std::unique_ptr<append> decided, const struct commit& answered);
  void reply_to(std::unique_ptr<remove> removal, const struct commit& answered);
  void reply_to(std::unique_ptr<start_run> refused,
                const struct commit& answered);
  void decide_again(std::unique_ptr<append> decided);
  void forget_message(const append& undone);
  void keep_out(std::unique_ptr<append> message, const std::string& other);
  void requeue();
  void reply_after_refresh(letter_list answered);
  void reply_in_order(std::unique_ptr<append> answered);
  letter_ptr hold_back(letter_ptr answered);
  void reply_held();
  void reply_held(std::unique_ptr<append> answered,
                  const std::optional<result<session>>& seen);
  void reply_all_held();

  // -- events that are not in memory ------------------------------------------

  void install_ids(const std::vector<std::uint32_t>& newest);
  std::unique_ptr<find_events> make_query() const;
  void forget_found();
  void refuse_asked(const find_events& failed);

  bool has_waiting_starts() const noexcept;
  // Returns true if the history that the run reads is in memory. If not,
  // fetches it.
  bool has_history_for(start_run& wanted);
  bool find_history_of(start_run& wanted);
  // Returns true if all events from number `first` on are in memory. If not,
  // fetches the missing ones.
  bool reach(std::uint64_t first);
  void fetch(std::unique_ptr<read_events> wanted);
  void receive_search(std::unique_ptr<read_events> answered);
  void keep_passed(read_events& answered, std::uint64_t first);
  void forget_old_events();
  bool is_changing() const noexcept;
  bool continues(std::uint64_t before, const event_ptr& newest) const;
  bool is_continued_by(const stored_session& found) const;
  void add_loaded(std::vector<event_ptr> newest);
  void search_again();
  void resume_waiting(letter_list waiting);
  void resume_after_load();

  // -- going back in place of a load ------------------------------------------

  // Null if the session cannot go back to its present memory, or does not have
  // to: no other process writes to its user or app.
  std::unique_ptr<savepoint> make_savepoint() const;
  void note_undone(struct commit& answered);
  void forget_savepoint() noexcept;
  void load_from_store() noexcept;
  void go_back();

  // -- readers that follow the session ----------------------------------------

  bool has_in_memory(const follow& wanted) const noexcept;
  void note_load(std::uint64_t before);
  void read_for(std::unique_ptr<follow> wanted);
  void take_read(std::unique_ptr<follow> answered);

  // -- end --------------------------------------------------------------------

  void finish_remove(std::unique_ptr<remove> removal);
  void refuse(std::unique_ptr<remove> removal, const error& why);
  void send_on(letter_ptr sent);
  void leave_all_behind();

  // Number of the newest event that is durable.
  std::uint64_t acknowledged_ = 0;

  // A load: the revision that it found, and the acknowledged one before it.
  struct past_load {
    std::uint64_t number = 0;
    std::uint64_t found = 0;
    std::uint64_t before = 0;
  };

  // The newest loads, oldest first. Kept once a reader has asked for the end.
  std::vector<past_load> past_loads_;
  bool keeps_loads_ = false;
  std::uint64_t loads_ = 0;
  // Number of the stored session; 0 if the store has no such numbers. Known if
  // the last load has found the session.
  std::uint64_t incarnation_ = 0;
  bool knows_incarnation_ = false;
  // True if the last load asked for later events only, and the session was
  // another one.
  bool loads_all_ = false;
  // The store's losses when the last load was installed.
  std::uint64_t seen_losses_ = 0;
  // Number of commits that the queue has not answered.
  std::size_t commits_ = 0;
  // Letters of answered commits that are decided again, in order.
  letter_list again_;
  held_answers held_back_;
  // A commit since the last load is decided again. Memory before the first one;
  // null if it was not kept.
  bool has_undone_ = false;
  std::unique_ptr<savepoint> savepoint_;
  // The commit of the climb under way, which already has its place in the
  // queue.
  struct commit* reserved_ = nullptr;
  // Letters that wait for events that are not in memory.
  letter_list waiting_;
  bool fetching_ = false;
  // Number of loads after which the session may be another one of the same key,
  // or has fewer events. Reads and searches that started before such a load are
  // repeated.
  std::uint64_t cuts_ = 0;
  // The removal that ended the session; answered last, with the letters that
  // the session left.
  std::unique_ptr<remove> removal_;
  bool is_removed_ = false;
  // True if the session ends because its user is being removed.
  bool goes_with_user_ = false;
};

} // namespace troupe::actors
