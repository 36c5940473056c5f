// One user of one app: the only writer of its `user:` keys, and the parent of
// its sessions.
//
// It judges climbs of its sessions, and writes without a session, in order of
// arrival. Climbs that reach the app go up to it, as one batch at a time.

#pragma once

#include "troupe/actors/owners/parent.hpp"
#include "troupe/actors/owners/session.hpp"

#include <concepts>
#include <memory>
#include <string>

namespace troupe::actors {

class app_actor;

class user_actor final : public parent_actor {
public:
  user_actor(caf::actor_config& config,
             std::shared_ptr<setup> shared,
             app_actor& app,
             std::shared_ptr<const user_names> names);

  /// Sends a look-up to the app, where all look-ups start.
  void ask_app(letter_ptr wanted);

  owner_actor& app() const noexcept;

  app_actor& parent() const noexcept { return app_; }

  caf::behavior make_behavior() override;

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void refuse(letter_ptr received, const error& why) override;
  void finish_letters() override;
  ref<inbox_actor> spawn_child(const std::string& name,
                               std::unique_ptr<idle_child> idle) override;
  void hand_on(letter_ptr left, const std::string& child) override;
  void child_settled() override;
  error closed_reason() const override;
  owner_actor& top() noexcept override;

  bool can_load() const noexcept override {
    return !climbing_ && !is_writing();
  }

  bool needs_state() const noexcept override {
    return !queue_.empty() || climbing_ || removal_ || has_writes()
           || has_readers();
  }

  void install(load& loaded) override;
  void note_parked(letter& parked) override;
  void renew(letter& parked) const override;
  void refuse_waiting(const error& why) override;

private:
  using parent_actor::receive;
  void receive(std::unique_ptr<climb> up);
  void receive(std::unique_ptr<user_climb> answered);
  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<read_state> wanted);
  void receive(std::unique_ptr<write_state> wanted);
  void receive(std::unique_ptr<retire> wished);
  /// Adds the user's version and sends a look-up on to its session.
  template <std::derived_from<look_up> Letter>
  void receive(std::unique_ptr<Letter> wanted);
  void receive(std::unique_ptr<list> wanted);
  void list_session(std::unique_ptr<list> part);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<remove_user> wanted);

  void refuse(std::unique_ptr<climb> undone, const error& why);
  void refuse(std::unique_ptr<remove_user> removal, const error& why);
  void judge(climb& next);
  void decide_waiting();
  void send_down(std::unique_ptr<climb> answered);
  void finish_remove(std::unique_ptr<remove> removed);
  void remove_sessions();
  bool is_removable() const noexcept;
  void finish_remove_user();
  void end_removed();
  bool exists() const noexcept;
  bool may_leave() const noexcept;
  bool is_idle() const noexcept;

  // User and app hold each other; the app releases the user when it ends.
  const ref<app_actor> kept_app_;
  app_actor& app_;
  const std::shared_ptr<const user_names> names_;

  // The user had a session, or the store has the user.
  bool exists_;
  scope_version seen_app_;

  letter_list queue_; // Climbs and writes that wait in order.
  bool climbing_ = false;
  // State before the newest climb of a session with its past, which the app may
  // refuse as a whole.
  std::optional<scope_state> before_whole_;
  std::unique_ptr<remove_user> removal_;
  // The removal is in the store's queue.
  bool removing_ = false;
  bool asked_to_retire_ = false;
};

} // namespace troupe::actors
