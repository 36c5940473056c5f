// A typed reference to an actor.

#pragma once

#include <caf/actor_control_block.hpp>

#include <concepts>
#include <cstddef>
#include <utility>

namespace troupe::actors {

/// Keeps an actor in memory. Null by default. `Actor` may be an incomplete type
/// where the reference is only stored, copied or compared.
template <class Actor>
class ref {
public:
  ref() noexcept = default;

  ref(std::nullptr_t) noexcept {}

  explicit ref(Actor& kept) noexcept : kept_(kept.ctrl()) {}

  /// `kept` must be an `Actor`, or null.
  explicit ref(caf::strong_actor_ptr kept) noexcept : kept_(std::move(kept)) {}

  /// A reference to an actor is one to its base.
  template <class Derived>
  requires(!std::same_as<Derived, Actor> && std::derived_from<Derived, Actor>)
    ref(ref<Derived> other)
  noexcept : kept_(std::move(other).as_caf()) {}

  Actor& operator*() const noexcept {
    return static_cast<Actor&>(*kept_->get());
  }

  Actor* operator->() const noexcept { return &**this; }

  explicit operator bool() const noexcept { return kept_ != nullptr; }

  void reset() noexcept { kept_.reset(); }

  caf::actor_id id() const noexcept { return kept_->id(); }

  /// The same reference for CAF.
  const caf::strong_actor_ptr& as_caf() const& noexcept { return kept_; }

  caf::strong_actor_ptr as_caf() && noexcept { return std::move(kept_); }

  friend bool operator==(const ref& left, const ref& right) noexcept {
    return left.kept_ == right.kept_;
  }

private:
  caf::strong_actor_ptr kept_;
};

} // namespace troupe::actors
