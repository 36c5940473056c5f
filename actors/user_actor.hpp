// One user of one app: its `user:` keys, held by their only writer, and the way
// to its sessions.
//
// Batches of its sessions' events are judged here in order of arrival; those
// that reach the app climb on, one batch at a time.

#pragma once

#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/session_actor.hpp"

#include <memory>
#include <string>
#include <unordered_map>

namespace troupe::actors {

class user_actor final : public owner_actor {
public:
  user_actor(caf::actor_config& config,
             std::shared_ptr<setup> shared,
             app_actor& app,
             std::shared_ptr<const user_names> names);

  /// Sends a look-up to the app, where all of them start.
  void ask_app(letter_ptr wanted);

  owner_actor& app() const noexcept;

  caf::behavior make_behavior() override;

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void refuse(letter_ptr received, const error& why) override;
  void settle() override;
  void release() override;
  error closed_reason() const override;

  bool can_load() const noexcept override { return !climbing_; }

  void install(load& loaded) override;
  void note_parked(letter& parked) override;
  void renew(letter& parked) const override;
  void refuse_waiting(const error& why) override;

private:
  struct child {
    caf::strong_actor_ptr session;
    // While the session is being removed, or leaves memory: what asks for it
    // meanwhile.
    std::unique_ptr<letter_list> parked;
  };

  /// The session's entry, with an actor: over a store it is made to look
  /// whether the session exists. Null if it does not.
  child* find_child(const std::string& id);
  child& open_child(const std::string& id);

  void receive(std::unique_ptr<user_climb> answered);
  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<read_state> wanted);
  void receive(retire& wished);
  void hand_on(letter_ptr left, const std::string& id);
  void receive(std::unique_ptr<create> wanted);
  /// Adds the user's root and sends the letter on to its session.
  template <class Letter>
  void pass_down(std::unique_ptr<Letter> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<remove_user> wanted);

  void judge(climb& next);
  void send_down(std::unique_ptr<climb> answered);
  void finish_remove(std::unique_ptr<remove> removed);
  void unpark(std::unique_ptr<letter_list> parked);
  void remove_sessions();
  void finish_remove_user();
  bool is_idle() const noexcept;

  // Both let go of each other at the end of the app.
  const caf::strong_actor_ptr kept_app_;
  app_actor& app_;
  const std::shared_ptr<const user_names> names_;

  scope_state state_;
  // Whether there is such a user in the store.
  bool exists_ = true;
  root seen_app_;
  std::unordered_map<std::string, child> sessions_;

  letter_list queue_; // Climbs that wait for their turn.
  bool climbing_ = false;
  // Before the newest session with a past, which the app may refuse.
  std::optional<scope_state> before_whole_;
  std::unique_ptr<remove_user> removal_;
  // The removal is on its way through the store.
  bool removing_ = false;
  bool asked_to_retire_ = false;
};

} // namespace troupe::actors
