// One session: its state and its event log, held by their only writer, the
// sequencer of everything appended to it.
//
// Session keys live here; `user:` and `app:` keys climb to their owners,
// `temp:` keys never arrive. See docs/architecture.md, "The climb".

#pragma once

#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/recent_ids.hpp"
#include "troupe/core/event_log.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

/// The names above a session, shared by all sessions of a user.
struct user_names {
  std::string app;
  std::string user;
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

  caf::behavior make_behavior() override;

protected:
  void receive(letter_ptr received) override;
  void settle() override;
  void release() override;
  error closed_reason() const override;

private:
  // -- what it hears
  // -----------------------------------------------------------

  void receive(std::unique_ptr<climb> answered);
  void receive(std::unique_ptr<get> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<start_run> wanted);
  void receive(std::unique_ptr<end_run> ended);

  // -- appending
  // ---------------------------------------------------------------

  void start_batch();
  bool accept(append& next, bool undecided);
  result<void> check_revision(const append& next) const;
  bool join_earlier(std::unique_ptr<append>& retry);
  void commit();
  event_ptr finish_event(append& judged);
  void reply(std::unique_ptr<append> answered);
  void finish_create(create& judged);

  // -- runs
  // --------------------------------------------------------------------

  void grant(std::unique_ptr<start_run> next);
  void publish();

  void finish_remove();

  // The owners above send their roots in order, so what comes later is newer.
  void see(state_map user, state_map app);
  state_snapshot snapshot() const;

  // Who sits at this session's runs; most sessions have none.
  struct run_desk {
    std::vector<caf::strong_actor_ptr> active;
    letter_list waiting;
    std::shared_ptr<session_view> view = std::make_shared<session_view>();
  };

  user_actor& user_; // Ends after its sessions.
  const std::shared_ptr<const user_names> names_;
  const std::string id_;

  scope_state state_;
  event_log log_;
  recent_ids ids_;
  timestamp last_update_time_{};
  // The newest that this session has seen of the wider owners.
  state_map seen_user_;
  state_map seen_app_;

  letter_list queue_; // Appends and removals in their order.
  // The batch under way: all its letters, and those of them that were accepted.
  std::vector<std::unique_ptr<append>> batch_;
  std::vector<append*> accepted_;
  bool climbing_ = false;
  // Until the creation is committed, look-ups wait.
  bool created_ = false;
  letter_list early_;

  std::unique_ptr<run_desk> desk_;

  // Appends under way and their bytes in one word, as in `load_gate`; counted
  // by whoever tells them.
  static constexpr std::uint64_t one_append = std::uint64_t{1} << 36U;
  std::atomic<std::uint64_t> held_{0};
};

session_actor& as_session(const caf::strong_actor_ptr& actor) noexcept;

} // namespace troupe::actors
