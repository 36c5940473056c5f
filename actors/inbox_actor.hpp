// An actor whose messages come through an `inbox`: letters of ours, and CAF's
// own messages behind the same door.
//
// A letter costs one allocation and one exchange, and wakes the actor only when
// it sleeps. CAF messages are wrapped in letters, so the order between both
// kinds is the order of arrival.

#pragma once

#include "troupe/actors/inbox.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/mailbox_element.hpp>

#include <memory>

namespace troupe::actors {

struct setup;

class inbox_actor : public caf::event_based_actor {
public:
  inbox_actor(caf::actor_config& config, std::shared_ptr<setup> shared);

  /// Sends a letter, from any thread. A closed actor fails it at once, on this
  /// thread.
  void tell(letter_ptr sent);

  // -- what CAF calls
  // ----------------------------------------------------------

  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr sent, caf::execution_unit* unit) final;
  void launch(caf::execution_unit* unit, bool lazy, bool hide) final;
  resume_result resume(caf::execution_unit* unit, std::size_t throughput) final;
  void on_exit() final;

protected:
  /// Handles one letter. Must not throw: what it catches it answers.
  virtual void deliver(letter_ptr received) = 0;

  /// Whether handling a letter never runs users' code.
  virtual bool is_brief() const noexcept { return false; }

  /// Called when the letters at hand are handled; the place to send batches.
  virtual void rest() {}

  /// Lets go of what the actor holds; called once, on its own thread, when it
  /// ends.
  virtual void let_go() {}

  /// What letters to this actor get once it is gone.
  virtual error closed_reason() const = 0;

  /// Answers a letter that came when the actor was gone, on any thread.
  virtual void turn_away(letter_ptr sent) { sent->fail(closed_reason()); }

  /// Answers a letter that came before the actor was gone and was not handled;
  /// on its own thread.
  virtual void leave_behind(letter_ptr sent) { turn_away(std::move(sent)); }

  /// Called at the very end, behind all that was left behind.
  virtual void part() {}

  /// Whether letters have come in behind those at hand.
  bool has_letters() const noexcept { return !inbox_.empty(); }

  setup& shared() const noexcept { return *shared_; }

  const std::shared_ptr<setup>& share() const noexcept { return shared_; }

private:
  void wake();
  void handle(letter_ptr received);
  void handle_safely(letter_ptr received) noexcept;

  const std::shared_ptr<setup> shared_;
  inbox inbox_;
};

} // namespace troupe::actors
