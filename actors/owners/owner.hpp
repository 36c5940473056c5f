// Base of app, user and session actors: answers calls in batches. Over a store,
// an owner loads its state before it handles its first letter.

#pragma once

#include "troupe/actors/engine/inbox_actor.hpp"
#include "troupe/actors/failure.hpp"
#include "troupe/actors/messages.hpp"
#include "troupe/actors/setup.hpp"
#include "troupe/core/support/scope_state.hpp"

namespace troupe::actors {

class owner_actor : public inbox_actor {
public:
  /// `name` is used over a store only.
  owner_actor(caf::actor_config& config,
              std::shared_ptr<setup> shared,
              owner_name name);

  /// The owner's record in the store's queue; null without a store.
  const std::shared_ptr<live_owner>& live() const noexcept {
    static const std::shared_ptr<live_owner> none;
    return at_store_ ? at_store_->live : none;
  }

protected:
  setup& shared() const noexcept { return static_cast<setup&>(runs_on()); }

  std::shared_ptr<setup> share() const { return shared().share(); }

  // -- letters ----------------------------------------------------------------

  /// Handles one letter. The owner is loaded, unless `is_for_now` holds.
  virtual void handle(letter_ptr received) = 0;

  /// Gives a letter that had to wait the newest versions of the owners above.
  virtual void renew(letter&) const {}

  /// Called after the letters at hand were handled, before the answers go out.
  virtual void finish_letters() {}

  /// Releases the actors and letters that the owner holds, as `let_go` does.
  /// Answers that it gives are still sent.
  virtual void release() = 0;

  // -- over a store -----------------------------------------------------------

  /// Returns true if the owner has to load, or load again, before it decides
  /// anything. Always false without a store.
  bool is_waiting() const noexcept {
    return at_store_ && (!at_store_->is_loaded || at_store_->is_stale);
  }

  /// Makes the owner load again before it decides anything. Requires a store.
  void load_again() noexcept { at_store_->is_stale = true; }

  /// Makes the owner load before it handles its next letter. Requires a store.
  void load_on_demand() noexcept { at_store_->is_loaded = false; }

  /// Returns true if the owner's memory differs from the store.
  bool is_stale() const noexcept { return at_store_ && at_store_->is_stale; }

  // The functions from here to `refuse` are called over a store only.

  /// Returns true if a letter is handled even if the owner is not loaded:
  /// answers to its own letters, and letters that need no state.
  virtual bool is_for_now(const letter&) const noexcept { return false; }

  /// Returns true if nothing is under way that was decided on the current
  /// memory.
  virtual bool can_load() const noexcept { return false; }

  /// Returns true if work in hand needs the owner's state.
  virtual bool needs_state() const noexcept = 0;

  virtual load_options what_to_load() const { return {}; }

  /// Number of the oldest event to load with a session; UINT64_MAX: only the
  /// newest ones that `what_to_load` asks for.
  virtual std::uint64_t oldest_to_load() const { return UINT64_MAX; }

  /// Returns true if the owner can go back to its state in the store without a
  /// read, unless others have changed it.
  virtual bool can_go_back() const { return false; }

  /// Installs a successful load. Parked letters are handled afterwards.
  virtual void install(load&) {}

  /// Called when a letter is parked until the load ends. Letters for which
  /// `is_for_now` holds are handled before it.
  virtual void note_parked(letter&) {}

  /// Refuses letters in the owner's own queues after a load has failed.
  virtual void refuse_waiting(const error&) {}

  /// Answers a letter that could not be handled because the load failed.
  virtual void refuse(letter_ptr received, const error& why);

  /// The keys to send down, with their generation.
  scope_version version_of(const scope_state& state) const {
    return {state.keys(), generation()};
  }

  std::uint64_t generation() const noexcept {
    return at_store_ ? at_store_->generation : 0;
  }

  /// Returns true if letters wait for a load, or a load is under way.
  bool is_loading() const noexcept {
    return at_store_ && (at_store_->is_loading || !at_store_->parked.empty());
  }

  // -- answers ----------------------------------------------------------------

  /// Completes `answered` soon, on another thread, in the order of these calls.
  void answer(std::unique_ptr<call> answered);

  /// The same once the commits that the answer is based on are durable; at once
  /// without a store.
  void confirm(std::unique_ptr<call> held,
               live_owners owners,
               std::array<std::uint64_t, 3> generations,
               owner_actor& app);

  /// Answers that the session does not exist. Callers' code does not run on
  /// this actor.
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
  void receive(std::unique_ptr<load> loaded);
  void receive(std::unique_ptr<reload> told);
  void handle_parked();
  void send_answers();

  // State of an owner over a store. Separate, so that it costs no memory in
  // sessions without a store.
  struct store_part {
    std::shared_ptr<live_owner> live;
    bool is_loaded = false;
    bool is_loading = false;
    // A commit failed or another process changed the scope: load again.
    bool is_stale = false;
    std::uint64_t generation = 0;
    // Letters that wait for a load.
    letter_list parked;
  };

  letter_list answered_;
  const std::unique_ptr<store_part> at_store_;
};

} // namespace troupe::actors
