// Base of our actors: all messages come through an `inbox`, both our letters
// and CAF's messages.
//
// A letter costs one allocation and one atomic exchange, and schedules the
// actor only when it sleeps. CAF messages are wrapped in letters, so both kinds
// are handled in order of arrival.

#pragma once

#include "troupe/actors/engine/execution.hpp"
#include "troupe/actors/engine/inbox.hpp"

#include <caf/event_based_actor.hpp>
#include <caf/mailbox_element.hpp>

#include <memory>

namespace troupe::actors {

class inbox_actor : public caf::event_based_actor {
public:
  inbox_actor(caf::actor_config& config, std::shared_ptr<execution> on);

  /// Keeps a sleeping actor from running while this lives, so that this thread
  /// can read its state. Its letters wait meanwhile. For short reads only.
  class pause {
  public:
    /// `of` outlives this object.
    explicit pause(inbox_actor& of) noexcept
      : actor_(of.inbox_.try_wake() ? &of : nullptr) {}

    ~pause() {
      if (actor_ != nullptr && !actor_->inbox_.try_sleep())
        actor_->wake();
    }

    pause(const pause&) = delete;
    pause& operator=(const pause&) = delete;

    /// Returns true if the actor slept, and no letter has arrived since.
    bool holds() const noexcept {
      return actor_ != nullptr && actor_->inbox_.empty();
    }

  private:
    inbox_actor* const actor_;
  };

  /// Sends a letter. Thread-safe. If the actor has ended, `turn_away` answers
  /// the letter on the calling thread.
  void tell(letter_ptr sent);

  // -- called by CAF ----------------------------------------------------------

  using caf::event_based_actor::enqueue;
  void enqueue(caf::mailbox_element_ptr sent, caf::execution_unit* unit) final;
  void launch(caf::execution_unit* unit, bool lazy, bool hide) final;
  resume_result resume(caf::execution_unit* unit, std::size_t throughput) final;
  void on_exit() final;

protected:
  /// Handles one letter. Errors become answers; if it throws nevertheless, only
  /// this letter is dropped. `std::bad_alloc` ends the program, since the
  /// change may be half done.
  virtual void deliver(letter_ptr received) = 0;

  /// Returns true if handling a letter is short and never runs users' code.
  virtual bool is_brief() const noexcept { return false; }

  /// Called after the letters at hand were handled. Owners decide and send
  /// their batches here.
  virtual void rest() {}

  /// Releases the actors and letters that this actor holds. Called once, on its
  /// own thread, when it ends.
  virtual void let_go() {}

  /// The error that answers letters to an actor that has ended.
  virtual error closed_reason() const = 0;

  /// Answers a letter that was sent after the actor had ended. Called on the
  /// sender's thread.
  virtual void turn_away(letter_ptr sent) { sent->fail(closed_reason()); }

  /// Answers a letter that was queued but not handled before the actor ended.
  /// Called on the actor's thread.
  virtual void leave_behind(letter_ptr sent) { turn_away(std::move(sent)); }

  /// Last hook of the actor: runs after `leave_behind` was called for every
  /// unhandled letter.
  virtual void part() {}

  /// Returns true if further letters have arrived since the current batch was
  /// taken.
  bool has_letters() const noexcept {
    return !taken_.empty() || !inbox_.empty();
  }

  execution& runs_on() const noexcept { return *on_; }

private:
  void wake();
  void handle(letter_ptr received);
  void handle_safely(letter_ptr received);
  resume_result activation(caf::execution_unit* unit, std::size_t letters_max);

  const std::shared_ptr<execution> on_;
  inbox inbox_;
  letter_list
    taken_; // Letters of the inbox that no activation has handled yet.
};

} // namespace troupe::actors
