// What app, user and session actors have in common: they answer calls, a batch
// at a time.

#pragma once

#include "troupe/actors/inbox_actor.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"

namespace troupe::actors {

class owner_actor : public inbox_actor {
public:
  using inbox_actor::inbox_actor;

protected:
  /// Completes `answered` soon, off this actor, in the order of these calls.
  void answer(std::unique_ptr<call> answered);

  /// Answers that the session asked for does not exist; callers' code still
  /// runs off this actor.
  template <class Letter>
  void refuse_unknown(std::unique_ptr<Letter> wanted) {
    error why(errc::not_found,
              "session " + to_string(wanted->key) + " does not exist");
    if constexpr (std::is_base_of_v<call, Letter>) {
      wanted->outcome = std::move(why);
      answer(std::move(wanted));
    } else {
      wanted->fail(why);
    }
  }

  /// Called when the letters at hand are handled, before the answers go out.
  virtual void settle() {}

  /// Lets go of what the owner holds, as `let_go` does; what it answers still
  /// goes out.
  virtual void release() = 0;

  void rest() final;
  void let_go() final;

  bool is_brief() const noexcept final { return true; }

private:
  void send_answers();

  letter_list answered_;
};

/// Takes a letter as what its kind says it is.
template <class Letter>
std::unique_ptr<Letter> take_as(letter_ptr received) noexcept {
  return std::unique_ptr<Letter>(static_cast<Letter*>(received.release()));
}

/// Completes calls on the threads of the actor system, in order.
void complete_later(setup& shared, letter_list answered);

/// The actor behind a pointer made by spawning one of ours.
inbox_actor& as_inbox(const caf::strong_actor_ptr& actor) noexcept;

} // namespace troupe::actors
