// An owner with owners below it: the part that app and user share.
//
// Look-ups for a child are sent on in order of arrival. While a child is being
// removed, or leaves memory, letters for it are parked. Writes without a
// session (parent_writes.cpp) are decided in the same order as climbs.

#pragma once

#include "troupe/actors/owners/children.hpp"
#include "troupe/actors/owners/owner.hpp"
#include "troupe/actors/sessions/state_followers.hpp"
#include "troupe/core/support/recent_writes.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace troupe::actors {

class parent_actor : public owner_actor {
public:
  using owner_actor::owner_actor;

  /// The keys. Call while the actor is paused, or on its thread.
  const state_map& keys() const noexcept { return state_.keys(); }

protected:
  /// Makes the actor of a child. `idle` is its state, or null for a new child.
  virtual ref<inbox_actor> spawn_child(const std::string& name,
                                       std::unique_ptr<idle_child> idle)
    = 0;

  /// Handles a letter that a departed child did not handle.
  virtual void hand_on(letter_ptr left, const std::string& child) = 0;

  /// Called when letters for a child are no longer parked.
  virtual void child_settled() {}

  /// The app, where look-ups and letters of readers enter.
  virtual owner_actor& top() noexcept = 0;

  /// Calls `handle` with a letter of a parent, or one of `Own`.
  template <class... Own, class Handle>
  static void dispatch_to_parent(letter_ptr received, const Handle& handle) {
    dispatch<Own...,
             get,
             forward,
             start_run,
             end_run,
             create,
             list,
             follow_state,
             read_state,
             write_state,
             remove,
             remove_user,
             retire,
             shut_down>(std::move(received), handle);
  }

  void receive(std::unique_ptr<shut_down> told);
  void refuse(letter_ptr received, const error& why) override;
  void install(load& loaded) override;
  void release() override;
  void refuse_waiting(const error& why) override;

  /// Reads all keys, for a caller.
  scope_keys all_keys() const { return {state_.keys(), state_.revision()}; }

  // -- writes without a session -----------------------------------------------

  /// Decides a write. Requires that all judged shares are installed, and that
  /// all decisions of this owner have reached the store's queue.
  void decide(std::unique_ptr<write_state> wanted);

  /// Answers the writes of a commit, or keeps them to be decided again.
  void settle_writes(struct commit& answered);

  /// Returns true if a write is not answered yet, apart from those that this
  /// owner has not decided.
  bool has_writes() const noexcept {
    return writes_under_way_ > 0 || !writes_again_.empty();
  }

  // -- readers that follow the state ------------------------------------------

  /// Answers a reader of this owner, or keeps its letter.
  void receive(std::unique_ptr<follow_state> wanted);

  /// Answers the readers that wait, if the state has changed.
  void answer_readers();

  bool has_readers() const noexcept { return readers_ && !readers_->empty(); }

  /// Returns the letters of all readers that wait.
  letter_list take_readers();

  // -- children ---------------------------------------------------------------

  /// A child with its actor, which is made if it is missing. Without a store:
  /// null if there is no such child. Over a store only the store knows whether
  /// the child exists.
  children::child* find_child(const std::string& name);
  children::child& open_child(const std::string& name);

  /// Adds the owner's version, as `own`, and sends the look-up on to its child.
  /// A creation makes the child.
  template <class Letter>
  void send_below(std::unique_ptr<Letter> wanted,
                  const std::string& child,
                  scope_version& own) {
    auto* const known
      = std::is_same_v<Letter, create> ? &open_child(child) : find_child(child);
    if (known == nullptr)
      return refuse_unknown(std::move(wanted));
    own = version_of(state_);
    known->send(std::move(wanted));
  }

  /// Starts the removal of a child, whose letters are parked meanwhile.
  template <class Removal>
  void remove_child(std::unique_ptr<Removal> wanted, const std::string& child) {
    auto* const known = find_child(child);
    if (known == nullptr) {
      wanted->outcome = false;
      return answer(std::move(wanted));
    }
    if (!known->park())
      return known->send(std::move(wanted));
    wanted->done_by_child = true;
    known->tell(std::move(wanted));
  }

  /// Ends the parking for a child, and forgets it if it is `gone`. Returns its
  /// letters.
  [[nodiscard]] letter_list settle(const std::string& child, bool gone);
  void unpark(letter_list parked);

  /// Answers the steps of a child that leaves memory, or becomes idle.
  void settle_leaving(retire& wished);

  /// Returns true if a decided write is on its way to the store and back.
  bool is_writing() const noexcept { return writes_under_way_ > 0; }

  scope_state state_;
  children children_;

private:
  result<shared_write> judge(const write_state& wanted);
  void decide_again();
  void store_write(std::unique_ptr<write_state> decided,
                   std::optional<store_change> change);
  store_change change_of(const write_state& decided,
                         std::vector<resolution> remembered) const;
  live_owners as_owners() const;

  // Null if the state was never followed.
  std::unique_ptr<state_followers> readers_;
  recent_writes recent_writes_;
  std::size_t writes_under_way_ = 0;
  letter_list writes_again_;
};

} // namespace troupe::actors
