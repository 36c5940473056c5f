// What app, user and session actors have in common: they answer calls, a batch
// at a time, and over a store they load what they own before their first
// letter.

#pragma once

#include "troupe/actors/failure.hpp"
#include "troupe/actors/inbox_actor.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"

namespace troupe::actors {

class owner_actor : public inbox_actor {
public:
  /// `name` is used over a store alone.
  owner_actor(caf::actor_config& config,
              std::shared_ptr<setup> shared,
              owner_name name);

  /// What the store's queue knows of this owner; null without a store.
  const std::shared_ptr<live_owner>& live() const noexcept {
    static const std::shared_ptr<live_owner> none;
    return at_store_ ? at_store_->live : none;
  }

protected:
  // -- letters
  // -----------------------------------------------------------------

  /// Handles one letter, once the owner has loaded what it owns.
  virtual void handle(letter_ptr received) = 0;

  /// Whether a letter is handled though the owner is not loaded: what comes
  /// back to it, and what it does not have to be loaded for.
  virtual bool is_for_now(const letter& received) const noexcept = 0;

  /// Answers a letter that could not be handled, because the owner could not
  /// be loaded.
  virtual void refuse(letter_ptr received, const error& why);

  /// Called when the letters at hand are handled, before the answers go out.
  virtual void settle() {}

  /// Lets go of what the owner holds, as `let_go` does; what it answers still
  /// goes out.
  virtual void release() = 0;

  // -- over a store
  // ------------------------------------------------------------

  /// Whether the owner has to wait until it is loaded, or loaded again, before
  /// it decides anything. Never without a store.
  bool is_waiting() const noexcept {
    return at_store_ && (!at_store_->is_loaded || at_store_->is_stale);
  }

  /// Whether what is in memory has been found out of date.
  bool is_stale() const noexcept { return at_store_ && at_store_->is_stale; }

  /// Whether nothing is under way that was decided on what is in memory.
  virtual bool can_load() const noexcept = 0;

  virtual load_options what_to_load() const { return {}; }

  /// The oldest event to load with a session; above all others: none.
  virtual std::uint64_t oldest_to_load() const { return UINT64_MAX; }

  /// Takes what was loaded, without error; letters that waited follow.
  virtual void install(load& loaded) = 0;

  /// Takes note of a letter that has to wait for a load; what it is for now may
  /// overtake it.
  virtual void note_parked(letter&) {}

  /// Brings a letter that has waited up to date.
  virtual void renew(letter&) const {}

  /// Answers what waits in queues of its own when a load has failed.
  virtual void refuse_waiting(const error&) {}

  /// What goes down: the keys, and what they are based on.
  root root_of(const scope_state& state) const {
    return {state.keys(), generation()};
  }

  std::uint64_t generation() const noexcept {
    return at_store_ ? at_store_->generation : 0;
  }

  /// Whether letters wait for a load, or a load is under way.
  bool is_loading() const noexcept {
    return at_store_ && (at_store_->is_loading || !at_store_->parked.empty());
  }

  // -- answers
  // -----------------------------------------------------------------

  /// Completes `answered` soon, off this actor, in the order of these calls.
  void answer(std::unique_ptr<call> answered);

  /// The same once what it is based on is durable; at once without a store.
  void confirm(std::unique_ptr<call> held,
               live_owners owners,
               std::array<std::uint64_t, 3> generations,
               owner_actor& app);

  /// Answers that the session asked for does not exist; callers' code still
  /// runs off this actor.
  template <class Letter>
  void refuse_unknown(std::unique_ptr<Letter> wanted) {
    auto why = unknown_session(wanted->key);
    if constexpr (std::is_base_of_v<call, Letter>) {
      wanted->outcome = std::move(why);
      answer(std::move(wanted));
    } else {
      wanted->fail(why);
    }
  }

  void deliver(letter_ptr received) final;
  void rest() final;
  void let_go() final;

  bool is_brief() const noexcept final { return true; }

private:
  void start_load();
  void finish_load(std::unique_ptr<load> loaded);
  void handle_parked();
  void send_answers();

  // What an owner over a store has besides: without one it would cost each
  // session memory.
  struct store_part {
    std::shared_ptr<live_owner> live;
    bool is_loaded = false;
    bool is_loading = false;
    // What was loaded is out of date.
    bool is_stale = false;
    std::uint64_t generation = 0;
    // What waits for a load.
    letter_list parked;
  };

  letter_list answered_;
  const std::unique_ptr<store_part> at_store_;
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
