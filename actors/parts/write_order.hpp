// The order of one writer's appends, which ends at the first failure.
//
// Invariant: an append takes effect only while no earlier append of the same
// writer is refused. The session checks this when it decides the append, and
// notes each refusal before it decides later appends. A refusal that is decided
// again is taken back; an answered one stays until `resume`.

#pragma once

#include "troupe/contexts/pending.hpp"
#include "troupe/core/event.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace troupe::actors {

/// Thread-safe. Places are numbered in the order in which they are taken.
class write_order {
public:
  /// Takes the next place. Fails with `errc::cancelled`, and takes none, after
  /// an answered failure.
  result<std::uint64_t> take_place();

  /// Leaves a place; its append was answered.
  void leave_place();

  /// The reason why the append at `place` must not take effect: an earlier one
  /// is refused. Unset if it may.
  std::optional<error> refusal_of(std::uint64_t place) const;

  /// Notes a refusal that is not answered yet.
  void refuse(std::uint64_t place, const error& why);

  /// Takes back the refusal of `place`, because it is decided again.
  void take_back(std::uint64_t place);

  /// Notes a failure that is about to be answered.
  void fail(std::uint64_t place, const error& why);

  /// Forgets all failures once all places taken so far are left, then calls
  /// `done`. Calls it at once if no failure was answered.
  void resume(completion<void> done);

private:
  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::size_t under_way_ = 0;
  std::map<std::uint64_t, error> refused_;
  bool has_failed_ = false; // A failure was answered.
  std::vector<completion<void>> waiting_;
};

/// The place of an append in its writer's order. Appends without a writer have
/// none; the members then do nothing. Thread-safe.
class write_place {
public:
  write_place() = default;

  write_place(std::shared_ptr<write_order> order, std::uint64_t number)
    : order_(std::move(order)),
      number_(number) {}

  bool exists() const noexcept { return order_ != nullptr; }

  /// The reason why the append must not take effect; unset if it may.
  std::optional<error> refusal() const {
    return order_ ? order_->refusal_of(number_) : std::nullopt;
  }

  void refuse(const error& why) const {
    if (order_)
      order_->refuse(number_, why);
  }

  void take_back() const {
    if (order_)
      order_->take_back(number_);
  }

  /// Passes the answer to the writer's caller, and leaves the place.
  void answer(const completion<event_ptr>& done,
              result<event_ptr> outcome) const;

private:
  std::shared_ptr<write_order> order_;
  std::uint64_t number_ = 0;
};

} // namespace troupe::actors
