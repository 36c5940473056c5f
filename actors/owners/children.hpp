// The owners below an app or a user, by name, with the letters that wait for
// one that is being removed or leaves memory.

#pragma once

#include "troupe/actors/messages.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace troupe::actors {

/// Not thread-safe: for the actor that is the parent.
class children {
public:
  class child {
  public:
    /// Sends the letter to the actor, or parks it.
    void send(letter_ptr sent);

    /// Parks letters from now on. Returns false if they are parked already.
    bool park();

    bool is_parked() const noexcept { return parked_ != nullptr; }

    /// The state of a child without an actor; null if it has one.
    const idle_child* idle() const noexcept { return idle_.get(); }

    /// Sends a letter that does not wait, for an actor that letters are parked
    /// for.
    void tell(letter_ptr sent) const;

  private:
    friend children;

    ref<inbox_actor> actor_;              // Null: the child is idle.
    std::unique_ptr<letter_list> parked_; // Null: letters go to the actor.
    std::unique_ptr<idle_child> idle_;
  };

  bool empty() const noexcept { return all_.empty(); }

  /// The child of that name; null if there is none.
  child* find(const std::string& name);

  /// The child of that name. `make` gets the state of an idle one, or null, and
  /// returns its actor.
  template <class Make>
  child& open(const std::string& name, const Make& make) {
    auto& known = all_[name];
    if (!known.actor_)
      known.actor_ = make(std::exchange(known.idle_, nullptr));
    return known;
  }

  /// Calls `use(name, child)` for all.
  template <class Use>
  void for_each(const Use& use) {
    for (auto& [name, known] : all_)
      use(name, known);
  }

  /// The first `limit` names behind `behind`, in the order of their bytes.
  /// Children whose letters are parked are left out.
  std::vector<std::string> names(const std::string& behind,
                                 std::size_t limit) const;

  /// Answers a child that asks to leave memory: from now on its letters are
  /// parked, unless they are parked already. Does nothing if there is no such
  /// child.
  void answer_leaving(const std::string& name);

  /// Each ends the parking of a child and returns its parked letters, in their
  /// order. `forget` also removes the child.
  [[nodiscard]] letter_list resume(const std::string& name);
  [[nodiscard]] letter_list forget(const std::string& name);

  /// Ends the parking for a child that has given up its actor, and keeps its
  /// state. Returns its parked letters, in their order.
  [[nodiscard]] letter_list keep_idle(const std::string& name,
                                      std::unique_ptr<idle_child> state);

  /// Forgets all idle children.
  void forget_idle();

  /// Lets all children end.
  void shut_down();

  void clear() noexcept { all_.clear(); }

private:
  std::unordered_map<std::string, child> all_;
};

} // namespace troupe::actors
