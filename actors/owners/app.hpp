// One application: the only writer of its `app:` keys, and the parent of
// its users.
//
// The app is the widest owner, so it decides every climb that reaches it and
// waits for no other owner. Look-ups enter here and are sent down after the
// answers to earlier climbs. So a look-up sees each event in all scopes, or in
// none.

#pragma once

#include "troupe/actors/owners/parent.hpp"
#include "troupe/actors/owners/user.hpp"
#include "troupe/actors/sessions/list_index.hpp"

#include <concepts>
#include <memory>
#include <string>
#include <vector>

namespace troupe::actors {

class app_actor final : public parent_actor {
public:
  app_actor(caf::actor_config& config,
            std::shared_ptr<setup> shared,
            std::string name);

  caf::behavior make_behavior() override;

  const std::string& app_name() const noexcept { return name_; }

  /// Returns true if only the directory and the runtime itself hold references
  /// to the app, and its inbox is empty. Call on the app's thread and under the
  /// directory's lock, so that no reference is handed out meanwhile.
  bool is_unknown_elsewhere() const noexcept;

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void refuse(letter_ptr received, const error& why) override;
  void finish_letters() override;
  ref<inbox_actor> spawn_child(const std::string& name,
                               std::unique_ptr<idle_child> idle) override;
  void hand_on(letter_ptr left, const std::string& child) override;
  error closed_reason() const override;

  owner_actor& top() noexcept override { return *this; }

  bool can_load() const noexcept override {
    return judged_.empty() && !is_writing();
  }

  bool needs_state() const noexcept override {
    return !judged_.empty() || has_writes() || has_readers();
  }

private:
  using parent_actor::receive;
  void receive(std::unique_ptr<user_climb> up);
  /// Adds the app's version and sends a look-up on to its user.
  template <std::derived_from<look_up> Letter>
  void receive(std::unique_ptr<Letter> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<list_users> wanted);
  void receive(std::unique_ptr<follow_state> wanted);
  void receive(std::unique_ptr<read_state> wanted);
  void receive(std::unique_ptr<write_state> wanted);
  void receive(std::unique_ptr<struct commit> answered);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<remove_user> wanted);
  void receive_removed(std::unique_ptr<remove_user> removed);
  void receive(std::unique_ptr<retire> wished);
  bool is_idle() const noexcept;

  void judge(user_climb& next);
  void finish_climbs();

  const std::string name_;
  const std::shared_ptr<list_index> listed_; // Null over a store.
  // Climbs that were judged since the last answers went down, and the last of
  // their parts.
  std::vector<std::unique_ptr<user_climb>> judged_;
  climb* last_judged_ = nullptr;
  // Number of suggestions to leave since the last other letter.
  std::size_t idle_checks_ = 0;
  bool leaving_ = false;
};

} // namespace troupe::actors
