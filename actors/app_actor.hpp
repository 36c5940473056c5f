// One application: its `app:` keys, held by their only writer, and the way to
// its users.
//
// The widest owner: what climbs this far is committed here. Every look-up
// enters here, behind the answers on their way down, so that it sees one
// consistent cut.

#pragma once

#include "troupe/actors/list_index.hpp"
#include "troupe/actors/owner_actor.hpp"
#include "troupe/actors/user_actor.hpp"

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace troupe::actors {

class app_actor final : public owner_actor {
public:
  app_actor(caf::actor_config& config,
            std::shared_ptr<setup> shared,
            std::string name);

  caf::behavior make_behavior() override;

  const std::string& app_name() const noexcept { return name_; }

  /// Whether nobody else has a reference to it, and nothing has come in; to be
  /// asked on its own thread, while nobody can get one.
  bool is_unknown_elsewhere() const noexcept;

protected:
  void handle(letter_ptr received) override;
  bool is_for_now(const letter& received) const noexcept override;
  void refuse(letter_ptr received, const error& why) override;
  void settle() override;
  void release() override;
  error closed_reason() const override;

  bool can_load() const noexcept override { return judged_.empty(); }

  void install(load& loaded) override;

private:
  struct child {
    caf::strong_actor_ptr user;
    // While the user is being removed, or leaves memory: what asks for it
    // meanwhile.
    std::unique_ptr<letter_list> parked;
  };

  /// The user's entry, with an actor: over a store it is made to look whether
  /// the user exists. Null if it does not.
  child* find_child(const std::string& user);
  child& open_child(const std::string& user);

  void receive(std::unique_ptr<create> wanted);
  /// Adds the app's root and sends the letter on to its user.
  template <class Letter>
  void pass_down(std::unique_ptr<Letter> wanted);
  void receive(std::unique_ptr<list> wanted);
  void receive(std::unique_ptr<read_state> wanted);
  void receive(std::unique_ptr<remove> wanted);
  void receive(std::unique_ptr<remove_user> wanted);
  void receive_removed(std::unique_ptr<remove_user> removed);
  void receive(const retire& wished);
  void unpark(std::unique_ptr<letter_list> parked);
  bool is_idle() const noexcept;

  void judge(user_climb& next);

  const std::string name_;
  const std::shared_ptr<list_index> listed_; // Null over a store.
  scope_state state_;
  std::unordered_map<std::string, child> users_;
  // Judged since the last answers went down, and the last part of that.
  std::vector<std::unique_ptr<user_climb>> judged_;
  climb* last_judged_ = nullptr;
  // Suggestions to leave since the last other letter.
  std::size_t quiet_looks_ = 0;
  bool leaving_ = false;
};

} // namespace troupe::actors
